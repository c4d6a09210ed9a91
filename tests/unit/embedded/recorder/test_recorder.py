"""The recorder over the real API server in memory: every run has a record, and the record tells its true end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from trainwright.api.resources import EVENTS, PODS, TRAIN_JOBS
from trainwright.api.times import rfc3339
from trainwright.embedded.recorder.recorder import LOOK_SECONDS, Recorder
from trainwright.runs import Asked, Progress, Record, RunsHome, State
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer
from waiting import until


class World:
    """A server, a state directory, and a recorder that may come and go."""

    def __init__(self, server: VirtualServer, state: Path) -> None:
        self.server = server
        self.home = RunsHome(state)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.recorder = Recorder(self.server.client, self.home, clock=self.server.clock)
        self._task = asyncio.create_task(self.recorder.run())
        await until("the recorder to be synced", lambda: self.recorder.is_synced)

    async def kill(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def submit(self, name: str = "job", run: str | None = None) -> str:
        annotations = {"trainwright.dev/run": run} if run else {}
        body = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2, "numProcPerNode": 4}},
        }
        made: Json = await self.server.admin.create(TRAIN_JOBS, body, "default")
        return str(made["metadata"]["uid"])

    async def status(self, name: str = "job", **status: Any) -> None:
        await self.server.admin.patch(
            TRAIN_JOBS, {"status": status}, name=name, namespace="default", subresource="status"
        )

    async def end(self, kind: str, name: str = "job", message: str = "the jobset says so") -> None:
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Why",
            "message": message,
            "lastTransitionTime": rfc3339(self.server.clock.wall()),
        }
        await self.status(name, conditions=[condition], state=kind)

    async def pod(self, name: str, uid: str, exit_code: int | None = None, at: float = 0.0, attempt: int = 0) -> None:
        """A pod of the TrainJob that runs, or has ended."""
        annotations = {"trainwright.dev/run-trainjob": f"job/{uid}"}
        labels = {"jobset.sigs.k8s.io/restart-attempt": str(attempt)}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations, "labels": labels},
            "spec": {"containers": [{"name": "node", "image": "none"}]},
        }
        if self.server.get(PODS, name) is None:
            await self.server.admin.create(PODS, body, "default")
        now = self.server.clock.wall() + at
        state: Json = {"running": {"startedAt": rfc3339(now)}}
        phase = "Running"
        if exit_code is not None:
            ended = {"exitCode": exit_code, "startedAt": rfc3339(now), "finishedAt": rfc3339(now), "reason": "Error"}
            state, phase = {"terminated": ended}, "Failed" if exit_code else "Succeeded"
        status = {
            "phase": phase,
            "containerStatuses": [
                {"name": "node", "image": "none", "imageID": "", "restartCount": 0, "ready": False, "state": state}
            ],
        }
        await self.server.admin.patch(PODS, {"status": status}, name=name, namespace="default", subresource="status")

    async def delete(self, name: str = "job") -> None:
        await self.server.admin.delete(TRAIN_JOBS, name, "default")

    async def until(self, name: str = "job", **fields: object) -> Record:
        """Waits until the newest run of the name says this."""

        def look() -> Record | None:
            record = self.home.find(name)
            same = record is not None and all(getattr(record, field) == value for field, value in fields.items())
            return record if same else None

        return await until(f"run of {name} with {fields}", look, 10)


@asynccontextmanager
async def opened(state: Path) -> AsyncIterator[World]:
    async with VirtualServer() as server:
        world = World(server, state)
        await world.start()
        try:
            yield world
        finally:
            await world.kill()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with opened(tmp_path) as world:
        yield world


async def test_a_trainjob_that_nobody_recorded_gets_a_record(world: World) -> None:
    uid = await world.submit()
    record = await world.until(state="Pending")
    assert (record.uid, record.runtime, record.nodes, record.procs) == (uid, "torch-distributed", 2, 4)
    assert record.id == f"job-{uid[:5]}"


async def test_the_record_that_run_made_is_filled_in(world: World) -> None:
    world.home.create(Record(id="job-k3x9f", name="job", source="train.py", origin="run"), environment={"A": "1"})
    uid = await world.submit(run="job-k3x9f")
    record = await world.until(uid=uid)
    assert (record.id, record.source, record.origin) == ("job-k3x9f", "train.py", "run")
    assert world.home.of("job-k3x9f").environment.exists(), "its pods still need it"
    await world.end("Complete")
    await world.until(state="Complete", exit_code=0)
    await until("the environment to go", lambda: not world.home.of("job-k3x9f").environment.exists())


async def test_states_are_followed_and_listed_in_the_events(world: World) -> None:
    uid = await world.submit()
    await world.until(state="Pending")
    await world.pod("job-node-0", uid)
    await world.status(state="Running", message="running: node")
    record = await world.until(state="Running")
    assert record.started is not None
    await world.server.admin.patch(TRAIN_JOBS, {"spec": {"suspend": True}}, name="job", namespace="default")
    await world.until(state="Suspended")
    await world.end("Complete")
    record = await world.until(state="Complete")
    phases = [event["reason"] for event in world.home.of(record.id).read_events() if event["type"] == "Phase"]
    assert phases == ["Running", "Suspended", "Complete"]


async def test_a_failure_has_the_exit_code_of_the_first_container_that_failed_and_the_pods_time(world: World) -> None:
    uid = await world.submit()
    await world.pod("job-node-1", uid, exit_code=3, at=-20)
    await world.pod("job-node-0", uid, exit_code=1, at=-10)
    await world.end("Failed", message="jobset failed")
    record = await world.until(state="Failed")
    assert (record.exit_code, record.message) == (3, "jobset failed")
    assert record.ended == rfc3339(world.server.clock.wall() - 10), "when it ended, not when that was noticed"


async def test_an_exit_code_is_remembered_when_its_pod_is_deleted_before_the_end(world: World) -> None:
    uid = await world.submit()
    await world.pod("job-node-0", uid, exit_code=9, attempt=0)
    await world.pod("job-node-1", uid, exit_code=7, at=5, attempt=1)
    await world.until(state="Pending")
    for name in ("job-node-0", "job-node-1"):
        await world.server.admin.delete(PODS, name, "default")
    await world.end("Failed")
    record = await world.until(state="Failed")
    assert record.exit_code == 7, "of the last attempt"


async def test_a_deleted_job_says_by_whom(world: World) -> None:
    await world.submit()
    record = await world.until(state="Pending")
    world.home.ask(record.id, Asked(by="trainwright delete"))
    await world.delete()
    record = await world.until(state="Deleted")
    assert record.message == "deleted by trainwright delete"


async def test_a_job_that_ended_and_was_deleted_keeps_its_end(world: World) -> None:
    await world.submit()
    await world.end("Complete")
    await world.delete()  # before the recorder had a look
    record = await world.until(state="Complete")
    assert record.exit_code == 0


async def test_a_rerun_of_the_name_has_a_record_of_its_own(world: World) -> None:
    first = await world.submit()
    await world.end("Failed")
    await world.until(state="Failed")
    await world.delete()
    second = await world.submit()
    await world.until(uid=second)
    assert {run.uid: run.state for run in world.home.records()} == {first: "Failed", second: "Pending"}


async def test_what_ended_while_nobody_recorded_has_its_true_end(world: World) -> None:
    await world.submit("one")
    await world.submit("two")
    await world.submit("three")
    for name in ("one", "two", "three"):
        await world.until(name, state="Pending")
    await world.kill()
    await world.end("Complete", "one")
    await world.end("Failed", "two", message="out of memory")
    await world.delete("three")
    await world.start()
    await world.until("one", state="Complete")
    await world.until("two", state="Failed", message="out of memory")
    await world.until("three", state="Deleted")


async def test_a_run_that_died_before_it_submitted_is_told_so_and_not_while_it_lives(world: World) -> None:
    world.home.create(Record(id="dead", name="dead"), environment={"A": "1"})
    world.home.create(Record(id="alive", name="alive"))
    with world.home.followed("alive"):
        await world.server.clock.advance(LOOK_SECONDS)
        record = await world.until("dead", state="Failed")
        assert record.reason == "NotSubmitted"
        await until("the environment to go", lambda: not world.home.of("dead").environment.exists())
        alive = world.home.read("alive")
        assert alive is not None
        assert alive.state == State.SUBMITTING


async def test_a_rerun_of_a_fixed_name_that_died_before_it_submitted_is_told_so(world: World) -> None:
    await world.submit()
    await world.end("Complete")
    first = await world.until(state="Complete")
    world.home.create(Record(id="job-again", name="job", created="not a time", pid=1))
    await world.server.clock.advance(LOOK_SECONDS)

    def reasons() -> dict[str, str]:
        return {run.id: run.reason for run in world.home.records()}

    await until("its end", lambda: reasons() == {"job-again": "NotSubmitted", first.id: "Why"}, 10)


async def test_what_was_submitted_is_kept_whoever_submitted_it(world: World) -> None:
    await world.submit()
    record = await world.until(state="Pending")
    kept = world.home.of(record.id).trainjob
    await until("the TrainJob", kept.exists, 10)
    job = json.loads(kept.read_text())
    assert (job["kind"], job["metadata"]["name"]) == ("TrainJob", "job")
    assert job["spec"]["trainer"] == {"numNodes": 2, "numProcPerNode": 4}
    assert "status" not in job


async def test_a_run_given_up_too_early_is_taken_back(world: World) -> None:
    world.home.create(Record(id="job-late0", name="job"))
    await world.server.clock.advance(LOOK_SECONDS)
    await world.until(reason="NotSubmitted")
    uid = await world.submit(run="job-late0")
    record = await world.until(uid=uid, state="Pending")
    assert record.id == "job-late0"
    await world.end("Complete")
    await world.until(state="Complete")


async def test_runs_on_other_clusters_are_left_alone(world: World) -> None:
    world.home.create(Record(id="remote", name="remote", context="prod", uid="uid-9", state=State.RUNNING))
    world.home.create(Record(id="dead", name="dead"))
    await world.server.clock.advance(LOOK_SECONDS)
    await world.until("dead", state="Failed")
    record = world.home.read("remote")
    assert record is not None
    assert record.state == "Running"


async def test_reports_are_kept_each_once(world: World) -> None:
    await world.submit()
    for step in (1, 2, 3):
        time = rfc3339(world.server.clock.wall() + step)
        reported = {
            "lastUpdatedTime": time,
            "progressPercentage": step,
            "metrics": [{"name": "loss", "value": f"{step}"}],
        }
        await world.status(trainerStatus=reported)
    last = Progress(time=rfc3339(world.server.clock.wall() + 3), percent=3, metrics={"loss": "3"})
    record = await world.until(progress=last)
    await world.kill()
    await world.start()
    await world.end("Complete")
    await world.until(state="Complete")
    assert [report["percent"] for report in world.home.of(record.id).read_metrics()] == [1, 2, 3]


async def test_events_of_the_job_and_its_pods_are_kept_each_once(world: World) -> None:
    uid = await world.submit()
    record = await world.until(state="Pending")

    async def happen(name: str, kind: str, about: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"kind": kind, "name": about, "namespace": "default", "uid": uid},
            "type": "Warning",
            "reason": "Because",
            "message": name,
            "lastTimestamp": rfc3339(world.server.clock.wall() + 1),
        }
        await world.server.admin.create(EVENTS, body, "default")

    await happen("of-the-pod", "Pod", "job-node-0-0-abcde")
    await happen("of-the-job", "TrainJob", "job")
    await happen("of-another", "TrainJob", "another")
    run = world.home.of(record.id)

    def messages() -> list[str]:
        return sorted(event["message"] for event in run.read_events() if event["reason"] == "Because")

    await until("both events", lambda: messages() == ["of-the-job", "of-the-pod"], 10)
    await world.kill()
    await world.start()
    await happen("once-more", "TrainJob", "job")
    await until("the new event", lambda: messages() == ["of-the-job", "of-the-pod", "once-more"], 10)


async def test_the_last_state_is_recorded_at_an_orderly_stop(world: World) -> None:
    uid = await world.submit("other")
    await world.until("other", state="Pending")
    job = await world.submit()
    await world.pod("job-node-0", job)
    await world.until(state="Pending")
    await world.kill()
    await world.end("Complete", "other")  # no watch shows it any more
    await world.recorder.finish()
    other = world.home.find("other")
    assert other is not None
    assert (other.uid, other.state) == (uid, "Complete")
    await world.pod("job-node-0", job, exit_code=143)
    await world.end("Failed", message="jobset failed")
    await world.start()
    record = await world.until(state="Failed")
    assert record.message.startswith("the cluster was stopped at 20")
    assert record.message.endswith("jobset failed")


async def test_old_runs_go_by_the_limits_and_an_event_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    old = world.home.create(Record(id="old", name="old", state=State.COMPLETE, ended="2020-01-01T00:00:00Z"))
    await world.submit()
    await world.end("Complete")
    await world.until(state="Complete")
    await until("the old run to go", lambda: not old.path.exists(), 10)

    def said() -> list[str]:
        return [event["message"] for event in world.server.list(EVENTS) if event.get("reason") == "RunDeleted"]

    await until("an event", said, 10)
    assert "run old deleted with its logs and outputs: it ended more than 90 days ago" in said()[0]
    assert "run old deleted" in caplog.text
    assert [gone.id for gone in world.home.deletions()] == ["old"]


async def test_a_run_that_the_user_deleted_stays_deleted_while_its_trainjob_exists(world: World) -> None:
    await world.submit()
    await world.end("Complete")
    record = await world.until(state="Complete")
    world.home.delete(record.id, "told to", world.server.clock.wall())
    await world.kill()
    await world.start()
    await world.submit("next")
    await world.until("next", state="Pending")
    assert world.home.find("job") is None


async def test_a_disk_that_refuses_ends_neither_the_recorder_nor_what_it_records_later(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.submit()
    await world.until(state="Pending")
    runs, elsewhere = world.home.path, world.home.path.with_name("elsewhere")
    runs.rename(elsewhere)
    runs.write_text("not a directory")
    await world.submit("other")
    await world.end("Complete")
    await until("the refusal to be logged", lambda: "File exists" in caplog.text or "Not a directory" in caplog.text)
    await world.recorder.finish()  # says so, and raises nothing
    runs.unlink()
    elsewhere.rename(runs)
    await world.server.clock.advance(60)
    await world.until(state="Complete")
    await world.until("other", state="Pending")


async def test_an_event_belongs_to_the_job_with_the_longest_name(world: World) -> None:
    for name in ("job", "job-node"):
        await world.submit(name)
        await world.until(name, state="Pending")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "job-node-node-0-0-abcde", "namespace": "default"},
        "reason": "Because",
        "lastTimestamp": rfc3339(world.server.clock.wall() + 1),
    }
    await world.server.admin.create(EVENTS, body, "default")

    def reasons(name: str) -> list[str]:
        record = world.home.find(name)
        assert record is not None
        return [event["reason"] for event in world.home.of(record.id).read_events()]

    await until("the event", lambda: "Because" in reasons("job-node"), 10)
    assert "Because" not in reasons("job")
