"""The controllers may be killed after any of their writes: those that come after them reach the same end.

A JobSet of two Jobs whose first pod fails once, on the real API server in virtual time.
"""

from __future__ import annotations

import asyncio

from trainwright.api.resources import JOB_SETS, JOBS, NODES, PODS
from trainwright.api.times import rfc3339
from trainwright.controlloop import Manager
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import Crash, Rule
from trainwright.testing.virtualserver import VirtualServer

OWN = ("jobset", "job", "scheduler")
TURNS = 120

POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]}}
JOB_SET: Json = {
    "apiVersion": JOB_SETS.api_version,
    "kind": "JobSet",
    "metadata": {"name": "js"},
    "spec": {
        "failurePolicy": {"maxRestarts": 1},
        "replicatedJobs": [
            {"name": name, "template": {"spec": {"parallelism": 2, "completions": 2, "template": POD, **more}}}
            for name, more in (("a", {"backoffLimit": 1}), ("b", {"backoffLimit": 0}))
        ],
    },
}


async def live(crash: int | None) -> tuple[Json, int]:
    """The end, and how many writes it took. `crash`: the write after which the controllers die, counted from one."""
    async with VirtualServer() as server:
        await server.admin.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        ready = {"type": "Ready", "status": "True"}
        status = {"conditions": [ready], "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "100"}}
        await server.admin.patch(NODES, {"status": status}, name="n", subresource="status")
        await server.admin.create(JOB_SETS, JOB_SET, "default")
        if crash is not None:
            # Events are left out: nobody waits for them.
            quiet = Rule(Crash(), writes_only=True, nth=crash, when=lambda request: "/events" not in request.path)
            server.faults.rules.append(quiet)
        task = asyncio.create_task(manage(server))
        try:
            for _ in range(TURNS):
                await server.clock.advance(1.0)
                await play_pods(server)
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


async def play_pods(server: VirtualServer) -> None:
    """The node: pods that are bound end, the first one of Job a's first attempt badly."""
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
        fails = labels["job-name"] == "js-a-0" and not siblings
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


async def test_whichever_write_was_the_last_the_end_is_the_same() -> None:
    expected, writes = await live(None)
    assert expected["conditions"][0][:2] == ("Completed", "True")
    assert expected["jobs"]["js-a-0"] == {"succeeded": 2, "failed": 1, "active": None}
    for crash in range(1, writes + 1):
        assert (crash, (await live(crash))[0]) == (crash, expected)
