"""Gangs by scheduler-plugins' coscheduling, with its real scheduler: all pods of a TrainJob, or none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kube.binaries import build
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import USER, Installation
from kube.stories import TORCH, base, create, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing import nodes
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import SCHEDULER, RealControlPlane
from trainwright.testing.processes import Process, free_port

NAME = "coscheduling"
POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    directory = tmp_path_factory.mktemp("coscheduling")
    parts = ("kube-controller-manager", "jobset", "kwok")
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane"), with_parts=parts) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        process = scheduler(running, directory)
        process.start()
        try:
            with Installation(running, overlay="manager"):
                yield running
        finally:
            process.stop(grace=0)


def scheduler(plane: RealControlPlane, directory: Path) -> Process:
    kubeconfig = plane.user_kubeconfig(SCHEDULER, "system:masters")
    plugin = {"enabled": [{"name": "Coscheduling"}]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [
            {
                "schedulerName": NAME,
                "plugins": {"multiPoint": plugin, "queueSort": {**plugin, "disabled": [{"name": "*"}]}},
                "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 5}}],
            }
        ],
    }
    file = directory / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    arguments: list[str | Path] = [
        build.program("coscheduling"),
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
    return Process(NAME, arguments, directory / "coscheduling.log")


def gang(policy: Json, nodes_of_a_job: int) -> Json:
    """A runtime of which each node of the cluster takes one pod."""
    made = runtime("it", {**TORCH, "numNodes": nodes_of_a_job}, podGroupPolicy=policy)
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    pod["schedulerName"] = NAME
    pod["containers"][0]["resources"] = {"requests": {"cpu": "6000"}}
    return made


def placed(plane: RealControlPlane, here: str) -> list[str]:
    pods = plane.admin.items(f"/api/v1/namespaces/{here}/pods")
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def test_a_gang_that_does_not_fit_starts_no_pod_and_all_when_there_is_room(plane: RealControlPlane) -> None:
    begin = plane.audit_position()
    here = plane.namespace()
    job = trainjob("job", "it", "hang")
    job["spec"]["trainer"]["numNodes"] = 3
    create(plane.admin, here, gang({"coscheduling": {"scheduleTimeoutSeconds": 5}}, 3), job)
    group = plane.admin.until(f"{POD_GROUPS.format(here)}/job", bool, what="PodGroup")
    assert group is not None
    assert group["spec"]["minMember"] == 3
    pods = f"/api/v1/namespaces/{here}/pods"
    plane.admin.until(pods, lambda it: it is not None and len(it["items"]) == 3, what="three pods")
    until_refused(plane, here)
    time.sleep(3)  # two of three would fit: they must stay where they are
    assert placed(plane, here) == []

    plane.admin.create("/api/v1/nodes", nodes.node("node-late"))
    end = time.monotonic() + 120
    while len(placed(plane, here)) != 3:
        assert time.monotonic() < end, plane.admin.items(pods)
        time.sleep(0.2)
    until_state(plane.admin, here, "Running")
    plane.admin.delete(f"{base(here)}/trainjobs/job")
    mine = requests(plane.audit_events(begin), user=USER)
    assert mine
    assert [str(request) for request in mine if request.code in (401, 403)] == []


def until_refused(plane: RealControlPlane, here: str) -> None:
    """The scheduler has looked at the gang and found no place for it."""

    def refused(pods: Json | None) -> bool:
        return any(
            condition["type"] == "PodScheduled" and condition["status"] == "False"
            for pod in (pods or {}).get("items") or ()
            for condition in pod["status"].get("conditions") or ()
        )

    plane.admin.until(f"/api/v1/namespaces/{here}/pods", refused, what="unschedulable", seconds=60)
