"""A bar in the log of a running job's first node becomes the job's progress, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.embedded.recorder.barreader import BLOCK, LOOK_SECONDS, REPORTER, WRITE_SECONDS
from trainwright.embedded.recorder.recorder import Recorder
from trainwright.runs import RunsHome
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer
from waiting import until

STAMP = "2026-01-01T00:00:00.000000000Z"


class World:
    """A job of two nodes whose first node writes a log."""

    def __init__(self, server: VirtualServer, state: Path) -> None:
        self.server = server
        self.home = RunsHome(state)
        self.logs: dict[int, Path] = {}

    async def create(self) -> None:
        job: Json = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": "job", "annotations": {"trainwright.dev/run": "job-run"}},
            "spec": {"runtimeRef": {"name": "torch-distributed"}},
        }
        made = await self.server.admin.create(TRAIN_JOBS, job, "default")
        for index in (0, 1):
            await self._pod(index, made["metadata"]["uid"])

    async def _pod(self, index: int, uid: str) -> None:
        annotations = {"trainwright.dev/run": "job-run", "trainwright.dev/run-trainjob": f"job/{uid}"}
        labels = {
            "batch.kubernetes.io/job-completion-index": str(index),
            "jobset.sigs.k8s.io/replicatedjob-name": "node",
        }
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{index}", "annotations": annotations, "labels": labels},
            "spec": {"containers": [{"name": "node", "image": "none"}]},
        }
        made = await self.server.admin.create(PODS, pod, "default")
        self.logs[index] = self.home.of("job-run").logs_of(f"pod-{index}", made["metadata"]["uid"]) / "node" / "0.log"
        self.logs[index].parent.mkdir(parents=True)
        await self.pod_is("Running", index)

    async def pod_is(self, phase: str, index: int = 0) -> None:
        now = rfc3339(self.server.clock.wall())
        state: Json = {"running": {"startedAt": now}}
        if phase != "Running":
            state = {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}
        container = {"name": "node", "image": "", "imageID": "", "restartCount": 0, "ready": True, "state": state}
        status = {"phase": phase, "containerStatuses": [container]}
        await self.server.admin.patch(
            PODS, {"status": status}, name=f"pod-{index}", namespace="default", subresource="status"
        )

    def write(self, text: str, index: int = 0, tag: str = "P") -> None:
        with self.logs[index].open("ab") as log:
            log.write(f"{STAMP} stderr {tag} {text}\n".encode())

    def progress(self) -> dict[str, Any]:
        job = self.server.get(TRAIN_JOBS, "job") or {}
        found: dict[str, Any] = (job.get("status") or {}).get("trainerStatus") or {}
        return found

    async def until_percent(self, percent: int) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            await self.server.clock.advance(LOOK_SECONDS)
            return self.progress() if self.progress().get("progressPercentage") == percent else None

        return await until(f"{percent} %", look)


def bar(step: int, **postfix: object) -> str:
    more = "".join(f", {name}={value}" for name, value in postfix.items())
    return f"\r {step}%|{'#' * (step // 10):10}| {step}/100 [00:01<00:09,  9.00it/s{more}]"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with VirtualServer() as server:
        world = World(server, tmp_path)
        recorder = Recorder(server.client, world.home, clock=server.clock)
        task = asyncio.create_task(recorder.run())
        await until("the recorder to be synced", lambda: recorder.is_synced)
        await world.create()
        try:
            yield world
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_bar_becomes_the_jobs_progress(world: World) -> None:
    world.write(bar(10, loss=0.5))
    seen = await world.until_percent(10)
    assert seen["estimatedRemainingSeconds"] == 9
    assert seen["metrics"] == [
        {"name": "loss", "value": "0.5"},
        {"name": "step", "value": "10"},
        {"name": "total", "value": "100"},
    ]
    world.write(bar(20) + bar(30))
    await world.until_percent(30)


async def test_only_the_first_node_counts(world: World) -> None:
    world.write(bar(90), index=1)
    world.write(bar(10))
    await world.until_percent(10)


async def test_the_last_state_is_written_although_the_pod_has_just_ended(world: World) -> None:
    world.write(bar(50))
    await world.until_percent(50)
    world.write(bar(100))
    await world.pod_is("Succeeded")

    def look() -> bool:  # the clock stands still: the end of the pod is reason enough
        return world.progress().get("progressPercentage") == 100

    await until("100 %", look)


async def test_training_code_that_reports_has_the_word(world: World) -> None:
    body = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "status": {"trainerStatus": {"progressPercentage": 7, "lastUpdatedTime": "2026-01-01T00:00:00Z"}},
    }
    admin = world.server.admin
    await admin.apply(TRAIN_JOBS, body, name="job", namespace="default", field_manager=REPORTER, subresource="status")
    world.write(bar(80))
    before = world.server.get(TRAIN_JOBS, "job")
    await world.server.clock.advance(10 * WRITE_SECONDS)
    assert world.server.get(TRAIN_JOBS, "job") == before
    assert world.progress()["progressPercentage"] == 7


async def test_a_log_that_has_grown_by_much_is_read_from_its_end(world: World) -> None:
    for _ in range(3 * BLOCK // 1000):
        world.write("x" * 1000, tag="F")
    world.write(bar(60))
    await world.until_percent(60)


async def test_a_rotated_log_goes_on(world: World) -> None:
    world.write(bar(10))
    await world.until_percent(10)
    log = world.logs[0]
    log.rename(log.with_name("0.log.1"))
    world.write(bar(20))
    await world.until_percent(20)
