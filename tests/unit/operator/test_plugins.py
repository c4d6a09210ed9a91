"""Plugins under a running operator: kinds and workloads of their own, and whom their faults must not touch."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from trainwright.api.metadata import Condition, ObjectMeta
from trainwright.api.resources import JOBS, Resource
from trainwright.api.trainjob import JobStatus, TrainJob
from trainwright.client.requests import Request
from trainwright.pipeline import Apply, Repair, Watch, WorkloadStatus, end_of
from trainwright.pipeline.info import Info
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.operator.memory_api import Failure
from unit.operator.world import World, mpi_runtime, runtime, train_job

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


class Widgets:
    """Puts a Widget beside the workload of TrainJobs whose name says so."""

    name = "Widgets"

    def __init__(self, repair: Repair = Repair.MISSING) -> None:
        self.repair = repair

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if job.metadata.name.startswith("widget"):
            body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"{info.name}-w"}}
            yield Apply({**body, "spec": {"size": 1}}, repair=self.repair)

    def watches(self) -> Iterator[Watch]:
        yield Watch(WIDGETS)


class JobView(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Json = {}
    status: Json = {}


class PlainJob:
    """Runs TrainJobs whose name says so as a batch/v1 Job."""

    name = "PlainJob"
    fault: Exception | None = None

    def sync_template(self, info: Info, job: TrainJob) -> None:
        if job.metadata.name.startswith("plain"):
            info.claim_workload(self.name)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if info.workload_plugin == self.name:
            body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": info.name}}
            yield Apply({**body, "spec": {"suspend": job.is_suspended}}, workload=True)

    def watches(self) -> Iterator[Watch]:
        yield Watch(JOBS, JobView, workload=True)

    def status(self, job: TrainJob, workload: JobView) -> WorkloadStatus:
        if self.fault is not None:
            raise self.fault
        active = workload.status.get("active", 0)
        conditions = [msgspec.convert(item, Condition) for item in workload.status.get("conditions", ())]
        return WorkloadStatus(
            end=end_of(conditions, complete="Complete"),
            jobs=[JobStatus("node", active=active, ready=active)],
            is_suspended=bool(workload.spec.get("suspend")),
            is_at_rest=not active,
        )


def world_with(*plugins: Any) -> World:
    world = World(None, *plugins)
    world.api.add("clustertrainingruntimes", runtime(), "")
    return world


# What is repaired


def gang_runtime(name: str, policy: str) -> Json:
    body = runtime(name)
    body["spec"]["podGroupPolicy"] = {policy: {}}
    return body


@pytest.mark.parametrize(
    ("plural", "name", "body"),
    [
        ("configmaps", "widget-mpi-hostfile", mpi_runtime("it")),
        ("podgroups", "widget", gang_runtime("it", "coscheduling")),
        ("podgroups", "widget", gang_runtime("it", "volcano")),
        ("widgets", "widget-w", runtime("it")),
    ],
    ids=["ConfigMap", "PodGroup of scheduler-plugins", "PodGroup of Volcano", "a kind of a plugin's own"],
)
async def test_a_child_deleted_beside_a_running_workload_comes_back(plural: str, name: str, body: Json) -> None:
    world = World(None, Widgets())
    world.api.add("clustertrainingruntimes", body, "")
    async with world:
        world.api.add("trainjobs", train_job("widget"))
        await world.settle(1)
        before, job_set = world.api.get(plural, name), world.job_set("widget")
        assert before is not None
        for _ in range(2):  # by the operator that built it, and by one that has just started
            world.api.remove(plural, name)
            await world.settle(1)
            after = world.api.get(plural, name)
            assert after is not None
            assert after["metadata"]["uid"] != before["metadata"]["uid"]
            assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
            await world.restart()
        assert world.job_set("widget") == job_set
        written = len(world.api.writes)
        await world.settle(600)
        assert len(world.api.writes) == written


async def test_a_secret_deleted_beside_a_running_workload_waits_for_the_next_start() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", mpi_runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle(1)
        world.api.remove("secrets", "job-mpi-ssh-auth")
        world.api.remove("configmaps", "job-mpi-hostfile")
        await world.settle(5)
        assert world.api.get("configmaps", "job-mpi-hostfile") is not None
        assert world.api.get("secrets", "job-mpi-ssh-auth") is None
        world.api.change("trainjobs", "job", {"spec": {"suspend": True}})
        await world.settle(1)
        assert world.api.get("secrets", "job-mpi-ssh-auth") is not None


@pytest.mark.parametrize(("repair", "size"), [(Repair.MISSING, 7), (Repair.CHANGED, 1)])
async def test_the_intention_says_whether_a_change_is_put_right(repair: Repair, size: int) -> None:
    world = world_with(Widgets(repair))
    async with world:
        world.api.add("trainjobs", train_job("widget"))
        await world.settle(1)
        world.api.change("widgets", "widget-w", {"spec": {"size": 7}})
        await world.settle(1)
        widget = world.api.get("widgets", "widget-w")
        assert widget is not None
        assert widget["spec"]["size"] == size
        written = len(world.api.writes)
        await world.settle(600)
        assert len(world.api.writes) == written


# Watches that fail


async def test_a_kind_that_is_not_installed_concerns_only_the_jobs_that_need_it() -> None:
    world = world_with(Widgets())
    world.api.absent.add("widgets")
    async with world:
        assert world.operator.is_ready
        for name in ("widget", "other"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(1)
        assert world.job_set("other") is not None
        assert world.job_set("widget") is None
        message = "plugin Widgets cannot watch widgets: widgets.example.com is not served by this API server"
        assert message in world.status("widget")["message"]
        world.api.absent.clear()
        await world.settle(10)
        assert world.api.get("widgets", "widget-w") is not None
        assert world.job_set("widget") is not None


async def test_a_watch_that_is_forbidden_concerns_only_the_jobs_that_need_it() -> None:
    world = world_with(Widgets())

    def forbid(request: Request) -> None:
        if request.path.endswith("/widgets"):
            world.api.refuse_next = Failure(403, "Forbidden", 'User "x" cannot list resource "widgets"')

    world.api.before = forbid
    async with world:
        assert world.operator.is_ready
        for name in ("widget", "other"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(1)
        assert world.job_set("other") is not None
        assert world.job_set("widget") is None
        message = 'plugin Widgets cannot watch widgets: User "x" cannot list resource "widgets"'
        assert world.status("widget")["message"] == message
        [event] = [thing for (plural, _, _), thing in world.api.objects.items() if plural == "events"]
        assert message in event["message"]
        world.api.before = lambda request: None
        await world.settle(60)
        assert world.job_set("widget") is not None
        assert "cannot watch" not in world.status("widget")["message"]


async def test_objects_that_cannot_be_decoded_concern_only_the_jobs_that_need_them() -> None:
    class Odd(msgspec.Struct, frozen=True):
        metadata: ObjectMeta
        spec: int = 0

    class Misread(Widgets):
        def watches(self) -> Iterator[Watch]:
            yield Watch(WIDGETS, Odd)

    world = world_with(Misread())
    world.api.add(
        "widgets", {"metadata": {"name": "x", "labels": {"app.kubernetes.io/managed-by": "trainwright"}}, "spec": {}}
    )
    async with world:
        assert world.operator.is_ready
        for name in ("widget", "other"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(1)
        assert world.job_set("other") is not None
        assert "plugin Widgets cannot watch widgets: " in world.status("widget")["message"]
        assert "Expected `int`, got `object`" in world.status("widget")["message"]


async def test_watches_that_raise_are_logged_by_name_and_concern_only_the_jobs_that_need_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Raises(Widgets):
        def watches(self) -> Iterator[Watch]:
            raise ZeroDivisionError("a bug of mine")

    with caplog.at_level(logging.ERROR):
        world = world_with(Raises())
    assert "plugin Widgets failed in watches: a bug of mine" in caplog.text
    async with world:
        assert world.operator.is_ready
        for name in ("widget", "other"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(1)
        assert world.job_set("other") is not None
        assert world.status("widget")["message"] == "plugin Widgets failed in watches: a bug of mine"


async def test_a_watch_that_is_taken_away_is_told_by_the_jobs_whose_workload_it_shows() -> None:
    world = world_with(PlainJob())
    async with world:
        for name in ("plain", "other"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(1)
        world.api.change("jobs", "plain", {"status": {"active": 1}})
        await world.settle(1)
        assert world.status("plain")["state"] == "Running"

        def forbid(request: Request) -> None:
            if request.path.endswith("/jobs"):
                world.api.refuse_next = Failure(403, "Forbidden", "cannot watch resource jobs")

        world.api.before = forbid
        world.api.cut("jobs")
        await world.settle(5)
        assert world.status("plain")["message"] == "plugin PlainJob cannot watch jobs: cannot watch resource jobs"
        assert world.status("plain")["state"] == "Running"
        assert world.status("other")["message"] == "waiting for the first pods"
        world.api.before = lambda request: None
        await world.settle(60)
        assert world.status("plain")["message"] == "running: node"


# A workload of one's own


def end_job(world: World) -> None:
    end = {"type": "Complete", "status": "True", "reason": "Why", "message": "the Job says so"}
    conditions = [{**end, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    world.api.change("jobs", "plain", {"status": {"active": 0, "conditions": conditions}})


async def test_a_job_runs_as_the_workload_of_a_plugin_to_its_end() -> None:
    world = world_with(PlainJob())
    async with world:
        world.api.add("trainjobs", train_job("plain"))
        await world.settle(1)
        assert world.job_set("plain") is None
        job = world.api.get("jobs", "plain")
        assert job is not None
        assert job["metadata"]["annotations"]["trainwright.dev/workload"] == "PlainJob"
        assert job["metadata"]["annotations"]["trainer.kubeflow.org/runtime-revision"]
        world.api.change("jobs", "plain", {"status": {"active": 1}})
        await world.settle(1)
        assert (world.status("plain")["state"], world.status("plain")["message"]) == ("Running", "running: node")
        end_job(world)
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        assert world.status("plain")["conditions"][0]["message"] == "the Job says so"
        world.api.remove("jobs", "plain")
        await world.settle(60)
        assert world.api.get("jobs", "plain") is None


async def test_a_workload_of_any_kind_goes_at_the_deadline() -> None:
    world = world_with(PlainJob())
    async with world:
        world.api.add("trainjobs", train_job("plain", activeDeadlineSeconds=30))
        await world.settle(28)
        assert world.api.get("jobs", "plain") is not None
        await world.settle(5)
        assert world.status("plain")["conditions"][0]["reason"] == "DeadlineExceeded"
        assert world.api.get("jobs", "plain") is None


async def test_a_workload_of_any_kind_is_suspended_and_resumed_and_built_again_when_deleted() -> None:
    world = world_with(PlainJob())
    async with world:
        first = None
        for suspend in (True, False, True, False):
            if first is None:
                world.api.add("trainjobs", train_job("plain", suspend=suspend))
            else:
                world.api.change("trainjobs", "plain", {"spec": {"suspend": suspend}})
            await world.settle(1)
            job = world.api.get("jobs", "plain")
            assert job is not None
            assert job["spec"]["suspend"] is suspend
            first = first or job["metadata"]["uid"]
            assert job["metadata"]["uid"] == first
        world.api.remove("jobs", "plain")
        await world.settle(1)
        job = world.api.get("jobs", "plain")
        assert job is not None
        assert job["metadata"]["uid"] != first
        written = len(world.api.writes)
        await world.settle(600)
        assert len(world.api.writes) == written


async def test_a_status_that_raises_is_told_by_name_changes_nothing_and_harms_nobody_else() -> None:
    plugin = PlainJob()
    world = world_with(plugin)
    async with world:
        for name in ("plain", "other"):
            world.api.add("trainjobs", train_job(name))
        await world.settle(1)
        world.api.change("jobs", "plain", {"status": {"active": 1}})
        await world.settle(1)
        job = world.api.get("jobs", "plain")
        assert job is not None
        plugin.fault = ZeroDivisionError("a bug of mine")
        world.finish_job_set(name="other")
        end_job(world)
        await world.settle(5)
        assert world.status("other")["state"] == "Complete"
        assert world.status("plain")["state"] == "Running"
        assert world.status("plain")["message"] == "plugin PlainJob failed in status: a bug of mine"
        events = [thing for (plural, _, _), thing in world.api.objects.items() if plural == "events"]
        assert [event["involvedObject"]["name"] for event in events] == ["plain"]
        now = world.api.get("jobs", "plain")
        assert now is not None
        assert now["metadata"]["uid"] == job["metadata"]["uid"]
        plugin.fault = None
        await world.settle(120)
        assert world.status("plain")["state"] == "Complete"


async def test_plugins_that_change_serve_the_next_job_without_a_restart() -> None:
    world = world_with()
    async with world:
        world.api.add("trainjobs", train_job("plain-before"))
        await world.settle(1)
        world.operator.use(load(discovered={"PlainJob": PlainJob}))
        world.api.add("trainjobs", train_job("plain"))
        await world.settle(1)
        assert world.api.get("jobs", "plain") is not None
        assert world.job_set("plain") is None
        assert world.job_set("plain-before") is not None
        assert world.api.get("jobs", "plain-before") is None
        end_job(world)
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        world.operator.use(load(discovered={}))
        world.api.add("trainjobs", train_job("plain-after"))
        await world.settle(1)
        assert world.job_set("plain-after") is not None
