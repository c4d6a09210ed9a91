"""The controllers may be killed after any of their writes: those that come after them reach the same end.

Stories of a JobSet of two Jobs on the real API server in virtual time: a pod fails and its Job tries again; a Job fails
and the JobSet restarts; one Job waits for the other; two gangs that each need the whole node. `TRAINWRIGHT_CRASHES=all`
kills them after every write of every story, else after every write of the first and some of the others.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from trainwright.api.resources import JOB_SETS, JOBS, KUBERNETES_POD_GROUPS, NODES, PODS
from trainwright.api.times import rfc3339
from trainwright.controlloop import Manager
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Crash, Rule
from trainwright.testing.virtualserver import VirtualServer

OWN = ("jobset", "job", "scheduler")
TURNS = 120
ALL = os.environ.get("TRAINWRIGHT_CRASHES") == "all"

CONTAINER = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
RESTART = "jobset.sigs.k8s.io/restart-attempt"


@dataclass(frozen=True)
class Story:
    """`fails` says which pods end badly: it is given a pod's labels and how many pods of its Job failed before."""

    job_set: Json
    fails: Callable[[Json, int], bool]
    ends: Json
    """What the end must say at least."""
    cpu: str = "8"
    gangs: tuple[str, ...] = ()


def job_set(**more: Any) -> Json:
    """Jobs a and b of two pods each; `a` and `b` are added to them, the rest to the JobSet's spec."""
    jobs = []
    for name in ("a", "b"):
        added = more.pop(name, {})
        gang = {"schedulingGroup": {"podGroupName": added.pop("gang")}} if "gang" in added else {}
        pod = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER], **gang}}
        limit = added.pop("backoffLimit", 0)
        spec = {"parallelism": 2, "completions": 2, "backoffLimit": limit, "template": pod}
        jobs.append({"name": name, "template": {"spec": spec}, **added})
    return {
        "apiVersion": JOB_SETS.api_version,
        "kind": "JobSet",
        "metadata": {"name": "js"},
        "spec": {"replicatedJobs": jobs, **more},
    }


def never(labels: Json, failed: int) -> bool:
    return False


def first_of_a(labels: Json, failed: int) -> bool:
    return labels["job-name"] == "js-a-0" and not failed


def b_at_first(labels: Json, failed: int) -> bool:
    return (labels["job-name"], labels[RESTART]) == ("js-b-0", "0")


DONE = {"succeeded": 2, "failed": None, "active": None}
AGAIN = {"succeeded": 2, "failed": 1, "active": None}
STORIES = {
    "a pod fails": Story(
        job_set(failurePolicy={"maxRestarts": 1}, a={"backoffLimit": 1}),
        first_of_a,
        {"restarts": 0, "jobs": {"js-a-0": AGAIN, "js-b-0": DONE}},
    ),
    "a job fails": Story(
        job_set(failurePolicy={"maxRestarts": 1}), b_at_first, {"restarts": 1, "jobs": {"js-a-0": DONE, "js-b-0": DONE}}
    ),
    "one waits for the other": Story(
        job_set(b={"dependsOn": [{"name": "a", "status": "Complete"}]}),
        never,
        {"restarts": 0, "jobs": {"js-a-0": DONE, "js-b-0": DONE}},
    ),
    "two gangs": Story(
        job_set(a={"gang": "first"}, b={"gang": "second"}),
        never,
        {"restarts": 0, "jobs": {"js-a-0": DONE, "js-b-0": DONE}},
        cpu="2",
        gangs=("first", "second"),
    ),
}


async def live(story: Story, crash: int | None) -> tuple[Json, int]:
    """The end, and how many writes it took. `crash`: the write after which the controllers die, counted from one."""
    async with VirtualServer(with_alpha=True) as server:
        await server.admin.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        ready = {"type": "Ready", "status": "True"}
        status = {"conditions": [ready], "allocatable": {"cpu": story.cpu, "memory": "8Gi", "pods": "100"}}
        await server.admin.patch(NODES, {"status": status}, name="n", subresource="status")
        for gang in story.gangs:
            await server.admin.create(KUBERNETES_POD_GROUPS, pod_group(gang), "default")
        await server.admin.create(JOB_SETS, story.job_set, "default")
        if crash is not None:
            # Events are left out: nobody waits for them.
            quiet = Rule(Crash(), writes_only=True, nth=crash, when=lambda request: "/events" not in request.path)
            server.faults.rules.append(quiet)
        task = asyncio.create_task(manage(server))
        try:
            for _ in range(TURNS):
                await server.clock.advance(1.0)
                await play_pods(server, story)
                if server.faults.crashed.is_set():
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    server.faults.crashed.clear()
                    task = asyncio.create_task(manage(server))
                found = server.get(JOB_SETS, "js") or {}
                if found.get("status", {}).get("terminalState"):
                    break
            await server.clock.advance(30.0)
            return end(server), len([w for w in server.faults.writes if "/events" not in w.path])
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def manage(server: VirtualServer) -> None:
    controllers = workload_controllers(server.client, server.clock, only=OWN)
    await Manager(server.client, controllers, clock=server.clock).run()


def pod_group(name: str) -> Json:
    group: Json = {"apiVersion": KUBERNETES_POD_GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": name}}
    return {**group, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}


async def play_pods(server: VirtualServer, story: Story) -> None:
    """The node: pods that are bound end as the story says."""
    for pod in server.list(PODS, "default"):
        if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase", "Pending") != "Pending":
            continue
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        siblings = [
            other
            for other in server.list(PODS, "default")
            if other["metadata"]["labels"].get("job-name") == labels["job-name"]
            and other.get("status", {}).get("phase") == "Failed"
        ]
        fails = story.fails(labels, len(siblings))
        now = rfc3339(server.clock.wall())
        ended = {"exitCode": int(fails), "startedAt": now, "finishedAt": now}
        container = {"name": "c", "image": "none", "imageID": "", "restartCount": 0, "ready": False}
        status = {
            "phase": "Failed" if fails else "Succeeded",
            "containerStatuses": [{**container, "state": {"terminated": ended}}],
        }
        await server.admin.patch(PODS, {"status": status}, name=name, namespace="default", subresource="status")


def end(server: VirtualServer) -> Json:
    job_set = server.get(JOB_SETS, "js") or {}
    status = job_set.get("status", {})
    return {
        "conditions": [(c["type"], c["status"], c["reason"], c["message"]) for c in status.get("conditions", ())],
        "counts": status.get("replicatedJobsStatus"),
        "restarts": status.get("restarts"),
        "jobs": {
            job["metadata"]["name"]: {key: job["status"].get(key) for key in ("succeeded", "failed", "active")}
            for job in server.list(JOBS, "default")
        },
        "pods": len(server.list(PODS, "default")),
    }


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_whichever_write_was_the_last_the_end_is_the_same(story: Story) -> None:
    expected, writes = await live(story, None)
    assert ("Completed", "True") in [condition[:2] for condition in expected["conditions"]]
    assert {key: expected[key] for key in story.ends} == story.ends
    step = 1 if ALL or story is STORIES["a pod fails"] else 5
    for crash in range(1, writes + 1, step):
        assert (crash, (await live(story, crash))[0]) == (crash, expected)
