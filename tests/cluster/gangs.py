"""What every gang scheduler must do with TrainJobs, told once: all pods of a gang start, or none of them.

In: a real control plane with a real gang scheduler, our operator beside it with the shipped roles, and `Gang`, which
says how runtimes name that scheduler. Out: nothing; a story that ends otherwise raises. Every node of the cluster takes
one pod of these runtimes, so that the number of nodes decides what fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kube.installation import USER
from kube.stories import TORCH, base, create, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing import nodes
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.grants import unused
from waiting import eventually

SECONDS = 120.0
BIG = {"requests": {"cpu": "6000"}}
"""More than half of a node."""


class Gang(msgspec.Struct, frozen=True):
    policy: Json
    """The runtime's `podGroupPolicy`."""
    pod_groups: str
    """The collection of its PodGroups, with `{}` for the namespace."""
    size: Callable[[Json], int]
    """How many pods a PodGroup says must start together."""
    scheduler: str = ""
    """The pods' `schedulerName`; none for Kubernetes' own."""

    def runtime(self, ml_policy: Json | None = None, *, initializer: bool = False, name: str = "it") -> Json:
        made = runtime(name, ml_policy or {**TORCH, "numNodes": 3}, podGroupPolicy=self.policy)
        replicated = made["spec"]["template"]["spec"]["replicatedJobs"]
        (node,) = replicated
        pod = node["template"]["spec"]["template"]["spec"]
        pod["containers"][0]["resources"] = BIG
        if self.scheduler:
            pod["schedulerName"] = self.scheduler
        if initializer:
            node["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
            replicated.insert(0, _initializer())
        return made

    def group(self, plane: RealControlPlane, here: str, name: str = "job") -> Json:
        found = plane.admin.until(f"{self.pod_groups.format(here)}/{name}", bool, what="PodGroup", seconds=60)
        assert found is not None
        return found


def _initializer() -> Json:
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}}
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "dataset-initializer", "image": "none"}]}}
    return {"name": "dataset-initializer", "template": {"metadata": step, "spec": {"template": pod}}}


def gang_of(count: int, name: str = "job") -> Json:
    job = trainjob(name, "it", "hang")
    job["spec"]["trainer"]["numNodes"] = count
    return job


def whole_or_not_at_all(plane: RealControlPlane, gang: Gang, here: str) -> None:
    """Two nodes, a gang of three with an initializer before it: none starts. With a third node all do."""
    create(plane.admin, here, gang.runtime(initializer=True), gang_of(3))
    assert gang.size(gang.group(plane, here)) == 3, "the initializer is no part of the gang"
    until_refused(plane, here, 3)
    assert placed(plane, here) == []
    plane.admin.create("/api/v1/nodes", nodes.node("node-late"))
    try:
        eventually("all three have a node", lambda: len(placed(plane, here)) == 3, SECONDS)
        until_state(plane.admin, here, "Running")
    finally:
        end(plane, here)
        plane.admin.delete("/api/v1/nodes/node-late")


def elastic_counts_its_fewest(plane: RealControlPlane, gang: Gang, here: str) -> None:
    """An elastic job of two to four nodes that is given three, on two: it starts with two."""
    policy = {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4, "maxRestarts": 2}}}
    create(plane.admin, here, gang.runtime(policy), gang_of(3))
    assert gang.size(gang.group(plane, here)) == 2
    eventually("three pods", lambda: len(gang_pods(plane, here)) == 3, SECONDS)
    eventually("two of them have a node", lambda: len(placed(plane, here)) == 2, SECONDS)
    end(plane, here)


def end(plane: RealControlPlane, here: str, name: str = "job") -> None:
    """Deletes the job and waits for its pods to go, so that the next story has the nodes."""
    plane.admin.delete(f"{base(here)}/trainjobs/{name}")
    eventually("no pod is left", lambda: not plane.admin.items(f"/api/v1/namespaces/{here}/pods"), SECONDS)


def gang_pods(plane: RealControlPlane, here: str) -> list[Json]:
    label = "jobset.sigs.k8s.io/replicatedjob-name=node"
    return plane.admin.items(f"/api/v1/namespaces/{here}/pods", labelSelector=label)


def placed(plane: RealControlPlane, here: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in gang_pods(plane, here) if pod["spec"].get("nodeName")]


def until_refused(plane: RealControlPlane, here: str, count: int) -> None:
    """Until all pods are there, and the scheduler has looked at the gang and found no place for it."""

    def refused() -> bool:
        found = gang_pods(plane, here)
        said = [
            condition
            for pod in found
            for condition in pod["status"].get("conditions") or ()
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]
        return len(found) == count and bool(said)

    eventually("the scheduler refuses the gang", refused, SECONDS)


def until_said(plane: RealControlPlane, here: str, *words: str, name: str = "job", seconds: float = 90.0) -> str:
    """The TrainJob's message, once it has all these words."""
    seen = ""

    def says() -> bool:
        nonlocal seen
        status = plane.admin.get(f"{base(here)}/trainjobs/{name}").get("status") or {}
        seen = str(status.get("message") or "")
        return all(word in seen for word in words)

    try:
        eventually(f"a message with {words}", says, seconds)
    except AssertionError:
        raise AssertionError(f"no message with {words}; last: {seen!r}") from None
    return seen


def check_privileges(plane: RealControlPlane, roles: Iterable[Json], group: str = "", *, since: int = 0) -> None:
    """Our operator asked for nothing forbidden, and used every grant that these roles give it in that API group."""
    mine = requests(plane.audit_events(since), user=USER)
    assert mine
    assert [str(request) for request in mine if request.code in (401, 403)] == []
    idle = [str(grant) for grant in unused(roles, mine) if not group or grant.group == group]
    assert idle == [], "granted and never used"


def size_by(*path: str) -> Callable[[Json], int]:
    def size(group: Json) -> int:
        found: Any = group["spec"]
        for field in path:
            found = found[field]
        return int(found)

    return size
