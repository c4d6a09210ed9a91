"""Gangs on the API: Jobs whose pods start together or not at all, on the real API server in virtual time.

The node is played: a pod that is bound runs for a while and succeeds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from trainwright.api.resources import (
    JOBS,
    KUBERNETES_POD_GROUPS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    VOLCANO_POD_GROUPS,
    Resource,
)
from trainwright.api.times import rfc3339, seconds_of
from trainwright.controlloop import Manager
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.embedded.workloads.scheduler.gangs import COSCHEDULING, NATIVE, VOLCANO
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer

RUN_SECONDS = 5.0
GROUPS: dict[str, Resource] = {
    COSCHEDULING: POD_GROUPS,
    VOLCANO: VOLCANO_POD_GROUPS,
    NATIVE: KUBERNETES_POD_GROUPS,
}


def pod_group(kind: str, name: str, count: int) -> Json:
    resource = GROUPS[kind]
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": count}}} if kind == NATIVE else {"minMember": count}
    return {"apiVersion": resource.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def job(name: str, count: int, cpu: str, kind: str | None = None, priority: str | None = None) -> Json:
    """A Job of `count` pods that run at once; with a kind of PodGroup they are a gang of the Job's name."""
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    spec: Json = {"restartPolicy": "Never", "containers": [container]}
    template: Json = {"metadata": {}, "spec": spec}
    if priority:
        spec["priorityClassName"] = priority
    if kind == COSCHEDULING:
        spec["schedulerName"] = "scheduler-plugins-scheduler"
        template["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": name}
    elif kind == VOLCANO:
        spec["schedulerName"] = "volcano"
        template["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
    elif kind == NATIVE:
        spec["schedulingGroup"] = {"podGroupName": name}
    body = {"parallelism": count, "completions": count, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


class World:
    """A server with one node, and who was seen on it."""

    def __init__(self, server: VirtualServer) -> None:
        self.server = server
        self.started: list[str] = []
        """Jobs in the order in which their first pod was bound."""
        self.halves: list[str] = []
        """Gangs that were seen with some of their pods bound and others not."""

    async def add(self, name: str, count: int, cpu: str, kind: str | None, priority: str | None = None) -> None:
        if kind is not None:
            await self.server.admin.create(GROUPS[kind], pod_group(kind, name, count), "default")
        await self.server.admin.create(JOBS, job(name, count, cpu, kind, priority), "default")

    async def run(self, gangs: dict[str, int], *, turns: int = 90) -> None:
        """Lets time pass until all Jobs are Complete."""
        for _ in range(turns):
            await self.server.clock.advance(1.0)
            pods = self.server.list(PODS, "default")
            self._look(pods, gangs)
            await self._play(pods)
            if all(_is_complete(each) for each in self.server.list(JOBS, "default")):
                return
        raise AssertionError(f"not all Jobs are Complete; started: {self.started}")

    def _look(self, pods: list[Json], gangs: dict[str, int]) -> None:
        for pod in sorted(pods, key=lambda pod: str(pod["status"].get("startTime", ""))):
            name = pod["metadata"]["labels"]["job-name"]
            if pod["spec"].get("nodeName") and name not in self.started:
                self.started.append(name)
        for name, count in gangs.items():
            bound = [p for p in pods if p["metadata"]["labels"]["job-name"] == name and p["spec"].get("nodeName")]
            if len(bound) not in (0, count):
                self.halves.append(name)

    async def _play(self, pods: list[Json]) -> None:
        now = self.server.clock.wall()
        for pod in pods:
            phase = pod["status"].get("phase", "Pending")
            if not pod["spec"].get("nodeName") or phase == "Succeeded":
                continue
            if phase == "Pending":
                status: Json = {"phase": "Running", "startTime": rfc3339(now)}
            elif now - seconds_of(pod["status"]["startTime"]) >= RUN_SECONDS:
                status = {"phase": "Succeeded"}
            else:
                continue
            name = pod["metadata"]["name"]
            await self.server.admin.patch(
                PODS, {"status": status}, name=name, namespace="default", subresource="status"
            )


def _is_complete(found: Json) -> bool:
    conditions = found.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)


@asynccontextmanager
async def world(
    cpu: str = "4", *, only: tuple[str, ...] = ("job", "scheduler"), there: Iterable[Json] = ()
) -> AsyncIterator[World]:
    """`there`: pods that wait before the controllers start."""
    async with VirtualServer(with_alpha=True) as server:
        await server.admin.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        room = {"cpu": cpu, "memory": "64Gi", "pods": "2000"}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": room}
        await server.admin.patch(NODES, {"status": status}, name="n", subresource="status")
        for pod in there:
            await server.admin.create(PODS, pod, "default")
        controllers = workload_controllers(server.client, server.clock, only=only)
        task = asyncio.create_task(Manager(server.client, controllers, clock=server.clock).run())
        try:
            yield World(server)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("kind", list(GROUPS))
async def test_two_jobs_that_each_need_the_whole_machine_run_one_after_the_other(kind: str) -> None:
    async with world() as here:
        await here.add("first", 4, "1", kind)
        await here.server.clock.advance(2.0)
        await here.add("second", 4, "1", kind)
        await here.run({"first": 4, "second": 4})
        assert here.started == ["first", "second"]
        assert here.halves == []


async def test_three_gangs_and_two_small_jobs_start_by_priority_and_then_in_their_order() -> None:
    async with world() as here:
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
        never = {**urgent, "value": 1000, "preemptionPolicy": "Never"}
        await here.server.admin.create(PRIORITY_CLASSES, never)
        await here.add("first", 4, "1", COSCHEDULING)
        await here.server.clock.advance(2.0)
        for name, count, cpu, kind, priority in (
            ("second", 2, "2", VOLCANO, None),
            ("small-1", 1, "3", None, None),
            ("small-2", 1, "3", None, None),
            ("urgent", 3, "1", NATIVE, "urgent"),
        ):
            await here.add(name, count, cpu, kind, priority)
            await here.server.clock.advance(1.0)
        await here.run({"first": 4, "second": 2, "urgent": 3})
        assert here.halves == []
        assert here.started == ["first", "urgent", "second", "small-1", "small-2"]


async def test_a_pod_group_of_kubernetes_says_whether_it_has_started() -> None:
    async with world("2") as here:
        await here.add("first", 2, "1", NATIVE)
        await here.server.clock.advance(2.0)
        await here.add("second", 2, "1", NATIVE)
        await here.server.clock.advance(2.0)
        assert told(here, "first") == ("True", "Scheduled", "")
        status, reason, message = told(here, "second")
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith("gang default/second waits as a whole: 0 of the 2 pods")
        await here.run({"first": 2, "second": 2})
        assert told(here, "second")[:2] == ("True", "Scheduled")


def told(here: World, name: str) -> tuple[str, str, str]:
    group = here.server.get(KUBERNETES_POD_GROUPS, name)
    assert group is not None
    (condition,) = group["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


async def test_a_thousand_pods_are_bound_in_little_time() -> None:
    """With everything around the decision: the watch, a binding and an event for each pod, and the API server."""
    spec = job("p", 1, "500m")["spec"]["template"]["spec"]
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}"}, "spec": spec} for number in range(1000)
    ]
    async with world("1000", only=("scheduler",), there=pods) as here:
        began = time.process_time()
        await here.server.clock.advance(5.0)
        took = time.process_time() - began
        bound = [pod for pod in here.server.list(PODS, "default") if pod["spec"].get("nodeName")]
        assert len(bound) == 1000
        print(f"a thousand pods bound in {took:.2f} s of CPU, the API server's included")
        assert took < 5.0
