"""`trainwright doctor` on a real control plane: what is in order, and what is not with its mend."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import COMMAND
from kube.installation import NAMESPACE, Installation
from kube.stories import TORCH, runtime
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from waiting import eventually

RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"


def findings(kubeconfig: Path, records: Path, namespace: str) -> dict[str, Json]:
    done = subprocess.run(
        [*COMMAND, "doctor", "--kubeconfig", str(kubeconfig), "--dir", str(records), "-n", namespace, "--json"],
        env={**os.environ, "KUBECONFIG": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    found = {item["what"]: item for item in json.loads(done.stdout)}
    assert done.returncode == (1 if any(item["state"] == "fail" for item in found.values()) else 0)
    assert all(item["mend"] for item in found.values() if item["state"] != "ok"), "each comes with its mend"
    return found


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    body = {**runtime("doctors", TORCH), "kind": "ClusterTrainingRuntime"}
    body["metadata"] = {"name": "doctors"}
    with Installation(plane) as running:
        plane.admin.create(RUNTIMES, body)
        yield running
        plane.admin.delete(f"{RUNTIMES}/doctors")


def test_i_see_that_my_cluster_is_ready(plane: RealControlPlane, installed: Installation, tmp_path: Path) -> None:
    namespace = plane.namespace()
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    eventually("an operator leads", lambda: plane.admin.items(leases), 60)
    found = findings(plane.admin_kubeconfig, tmp_path, namespace)
    in_order = (
        "API server", "TrainJobs", "TrainingRuntimes", "ClusterTrainingRuntimes", "JobSets", "rights", "runtimes",
        "validation", "defaulting", "rehearsal", "operator", "nodes",
    )  # fmt: skip
    assert {what: found[what]["text"] for what in in_order if found[what]["state"] != "ok"} == {}
    assert found["API server"]["text"].startswith("v1.")
    assert "valid until" in found["validation"]["text"]
    assert "a TrainJob would be taken" in found["rehearsal"]["text"], "the webhooks were asked, over TLS"
    assert "leads" in found["operator"]["text"]
    assert found["JobSet controller"]["state"] == "fail", "this plane runs it as a process, without a Deployment"
    jobs = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs"
    assert plane.admin.items(jobs) == [], "a rehearsal leaves nothing"


def test_i_see_which_rights_i_lack(plane: RealControlPlane, installed: Installation, tmp_path: Path) -> None:
    namespace = plane.namespace()
    found = findings(plane.user_kubeconfig("nobody", "nothing"), tmp_path, namespace)
    assert found["rights"]["state"] == "fail"
    assert f"you may not, in namespace {namespace}: create trainjobs" in found["rights"]["text"]
    assert "Role with these rights" in found["rights"]["mend"]
    assert "you may not see webhook configurations" in found["validation"]["text"]


def test_i_see_that_nobody_serves_the_webhooks(
    plane: RealControlPlane, installed: Installation, tmp_path: Path
) -> None:
    installed.operator.__exit__(None, None, None)
    try:
        found = findings(plane.admin_kubeconfig, tmp_path, plane.namespace())
        assert found["rehearsal"]["state"] == "fail"
        assert "failed calling webhook" in found["rehearsal"]["text"]
        assert "is the operator alive" in found["rehearsal"]["mend"]
    finally:
        installed.operator = installed.run_operator()
        installed.operator.__enter__()
