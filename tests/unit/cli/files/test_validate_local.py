"""`validate --local`: what of a TrainJob cannot run on this machine, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainwright.cli.files import here
from trainwright.cli.files.validate import validate
from trainwright.embedded.node.supervision.tiers import T0_ISOLATION, Tier

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: big, namespace: default}
spec:
  runtimeRef: {name: plain}
  trainer:
    numNodes: 2
    command: [python, train.py]
    resourcesPerNode: {limits: {nvidia.com/gpu: %d, cpu: 1}}
"""


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    tier = Tier("T0", T0_ISOLATION, "no namespaces")
    monkeypatch.setattr(here, "this_machine", lambda: (tier, {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}))


def test_a_job_that_asks_for_more_than_there_is_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB % 4)
    assert validate(files=[str(file)], local=True) == 1
    said = capsys.readouterr().out
    assert "cannot run on this machine" in said
    assert "  - node: asks for 4 nvidia.com/gpu, and this machine has 1\n" in said
    assert validate(files=[str(file)], local=True, output="json") == 1
    (entry,) = json.loads(capsys.readouterr().out)["documents"]
    assert entry["local"] == ["node: asks for 4 nvidia.com/gpu, and this machine has 1"]
    assert validate(files=[str(file)]) == 0


def test_a_job_that_fits_is_admitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB % 1)
    assert validate(files=[str(file)], local=True) == 0
    assert "all admitted" in capsys.readouterr().out


def test_what_the_node_does_not_support_is_said_in_its_words() -> None:
    spec = {"containers": [{"name": "node", "livenessProbe": {"grpc": {"port": 1}}, "command": ["x"]}]}
    job_set = {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]}}
    tier = Tier("T0", T0_ISOLATION, "no namespaces")
    assert here.why_not([job_set], tier, {}) == [
        "node: container node: livenessProbe.grpc is not supported by the local node yet"
    ]
