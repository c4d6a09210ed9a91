"""Kubernetes' own gang scheduling (1.36, alpha) with the real kube-scheduler: all pods of a TrainJob, or none."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import MANIFESTS, Installation
from kube.stories import TORCH, base, create, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing import nodes
from trainwright.testing.controlplane import CONTROLLERS, RealControlPlane, documents

GATES = ("GenericWorkload", "GangScheduling")
POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    with RealControlPlane(
        BuiltPrograms(),
        tmp_path_factory.mktemp("gang"),
        controllers=(*CONTROLLERS, "podgroup-protection-controller"),
        feature_gates=GATES,
        served=("scheduling.k8s.io/v1alpha2",),
    ) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        role = (MANIFESTS / "components" / "kubernetes-gang" / "cluster_role.yaml").read_text()
        for item in documents(role):
            plural = f"{item['kind'].lower()}s"
            running.admin.create(f"/apis/rbac.authorization.k8s.io/v1/{plural}", item)
        with Installation(running, overlay="manager", feature_gates=("KubernetesGang",)):
            yield running


def big_runtime() -> Json:
    """A runtime of which each node of the cluster takes one pod."""
    made = runtime("it", {**TORCH, "numNodes": 3}, podGroupPolicy={"kubernetes": {}})
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    container = job["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "6000"}}
    return made


def placed(plane: RealControlPlane, here: str) -> list[str]:
    pods = plane.admin.items(f"/api/v1/namespaces/{here}/pods")
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def test_a_gang_that_does_not_fit_starts_no_pod_and_all_when_there_is_room(plane: RealControlPlane) -> None:
    here = plane.namespace()
    job = trainjob("job", "it", "hang")
    job["spec"]["trainer"]["numNodes"] = 3
    create(plane.admin, here, big_runtime(), job)
    group = plane.admin.until(f"{POD_GROUPS.format(here)}/job", bool, what="PodGroup")
    assert group is not None
    assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3
    pods = f"/api/v1/namespaces/{here}/pods"
    plane.admin.until(pods, lambda it: it is not None and len(it["items"]) == 3, what="three pods")
    until_refused(plane, here)
    assert placed(plane, here) == []
    plane.admin.create("/api/v1/nodes", nodes.node("node-late"))
    end = time.monotonic() + 60
    while len(placed(plane, here)) != 3:
        assert time.monotonic() < end, plane.admin.items(pods)
        time.sleep(0.2)
    until_state(plane.admin, here, "Running")
    plane.admin.delete(f"{base(here)}/trainjobs/job")


def until_refused(plane: RealControlPlane, here: str) -> None:
    """The scheduler has looked at the gang and found no place for it."""

    def refused(pods: Json | None) -> bool:
        conditions = [
            condition
            for pod in (pods or {}).get("items") or ()
            for condition in pod["status"].get("conditions") or ()
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]
        return bool(conditions)

    plane.admin.until(f"/api/v1/namespaces/{here}/pods", refused, what="unschedulable", seconds=60)
