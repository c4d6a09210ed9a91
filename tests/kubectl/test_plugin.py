"""`kubectl trainjob …`: our commands as a plugin of the real kubectl."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kubectl.kubectl import Kubectl

JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: by-plugin}
spec:
  runtimeRef: {name: plain}
  trainer: {numNodes: 2, command: [echo, hello from a plugin]}
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl finds plugins on PATH."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def test_kubectl_lists_the_plugin(kubectl: Kubectl) -> None:
    assert "kubectl-trainjob" in kubectl("plugin", "list").out


def test_a_trainjob_is_run_and_shown_through_kubectl(kubectl: Kubectl) -> None:
    done = kubectl("trainjob", "run", "-", stdin=JOB)
    assert done.code == 0, done.text
    assert "[rank 1] hello from a plugin" in done.out
    assert "Complete" in kubectl("trainjob", "get", "by-plugin").out
    assert kubectl("trainjob", "get", "-o", "name").out == kubectl("get", "trainjobs", "-o", "name").out
    assert "by-plugin-node-0-0" in kubectl("trainjob", "describe", "by-plugin").out
    assert "by-plugin  Complete" in kubectl("trainjob", "why", "by-plugin").out
    assert kubectl("trainjob", "delete", "by-plugin", "-q").code == 0
    refused = kubectl("trainjob", "gett")
    assert (refused.code, refused.out) == (2, "")
    assert "did you mean get?" in refused.err


def test_kubectl_says_why_a_trainjob_failed(kubectl: Kubectl) -> None:
    broken = JOB.replace("by-plugin", "broken").replace("[echo, hello from a plugin]", "[cat, /no/such/file]")
    assert kubectl("trainjob", "run", "-", stdin=broken).code == 1
    answer = kubectl("trainjob", "why", "broken")
    assert answer.code == 0, answer.text
    assert "rank" in answer.out
    assert "/no/such/file" in answer.out
    assert "did you mean broken?" in kubectl("trainjob", "why", "borken").err


def test_without_kubeconfig_the_plugin_acts_where_kubectl_does(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(str(kubectl.kubeconfig and kubectl.kubeconfig.read_text()))
    alone = Kubectl(kubectl.program, None, tmp_path)
    listed = alone("trainjob", "get", "runtimes", "-o", "name")
    assert "clustertrainingruntime.trainer.kubeflow.org/plain" in listed.out, listed.err
    assert "on context" in listed.err, "it says where it acts"
