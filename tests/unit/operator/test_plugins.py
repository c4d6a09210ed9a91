"""Plugins under a running operator: kinds and workloads of their own, and whom their faults must not touch."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from trainwright.api.metadata import Condition, ObjectMeta
from trainwright.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    POD_GROUPS,
    SECRETS,
    TRAIN_JOBS,
    VOLCANO_POD_GROUPS,
    Resource,
)
from trainwright.api.trainjob import JobStatus, TrainJob
from trainwright.pipeline import Apply, Framework, Repair, Watch, WorkloadStatus, end_of
from trainwright.pipeline.info import Info
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.operator.world import SEE_PLUGINS, World, mpi_runtime, runtime, train_job

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
            pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "python"}]}
            spec = {"suspend": job.is_suspended, "template": {"spec": pod}}
            body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": info.name}, "spec": spec}
            yield Apply(body, workload=True)

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


# What is repaired


def gang_runtime(name: str, policy: str) -> Json:
    body = runtime(name)
    body["spec"]["podGroupPolicy"] = {policy: {}}
    return body


@pytest.mark.parametrize(
    ("resource", "name", "body"),
    [
        (CONFIG_MAPS, "widget-mpi-hostfile", mpi_runtime("it")),
        (POD_GROUPS, "widget", gang_runtime("it", "coscheduling")),
        (VOLCANO_POD_GROUPS, "widget", gang_runtime("it", "volcano")),
        (WIDGETS, "widget-w", runtime("it")),
    ],
    ids=["ConfigMap", "PodGroup of scheduler-plugins", "PodGroup of Volcano", "a kind of a plugin's own"],
)
async def test_a_child_deleted_beside_a_running_workload_comes_back(resource: Resource, name: str, body: Json) -> None:
    async with World(plugins=[Widgets()], kinds=[WIDGETS], runtimes=[body]) as world:
        await world.add(TRAIN_JOBS, train_job("widget"))
        await world.settle(1)
        before, job_set = world.get(resource, name), world.job_set("widget")
        for _ in range(2):  # by the operator that built it, and by one that has just started
            await world.remove(resource, name)
            await world.settle(1)
            after = world.get(resource, name)
            assert after["metadata"]["uid"] != before["metadata"]["uid"]
            assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
            await world.restart()
        assert world.job_set("widget") == job_set
        written = len(world.writes)
        await world.settle(600)
        assert len(world.writes) == written


async def test_a_secret_deleted_beside_a_running_workload_waits_for_the_next_start() -> None:
    async with World(runtimes=[mpi_runtime()]) as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(1)
        await world.remove(SECRETS, "job-mpi-ssh-auth")
        await world.remove(CONFIG_MAPS, "job-mpi-hostfile")
        await world.settle(5)
        assert world.find(CONFIG_MAPS, "job-mpi-hostfile") is not None
        assert world.find(SECRETS, "job-mpi-ssh-auth") is None
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": True}})
        await world.settle(1)
        assert world.find(SECRETS, "job-mpi-ssh-auth") is not None


@pytest.mark.parametrize(("repair", "size"), [(Repair.MISSING, 7), (Repair.CHANGED, 1)])
async def test_the_intention_says_whether_a_change_is_put_right(repair: Repair, size: int) -> None:
    async with World(plugins=[Widgets(repair)], kinds=[WIDGETS]) as world:
        await world.add(TRAIN_JOBS, train_job("widget"))
        await world.settle(1)
        await world.change(WIDGETS, "widget-w", {"spec": {"size": 7}})
        await world.settle(1)
        assert world.get(WIDGETS, "widget-w")["spec"]["size"] == size
        written = len(world.writes)
        await world.settle(600)
        assert len(world.writes) == written


# Watches that fail


async def test_a_kind_that_is_not_installed_concerns_only_the_jobs_that_need_it() -> None:
    async with World(plugins=[Widgets()]) as world:
        assert world.operator.is_ready
        for name in ("widget", "other"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(1)
        assert world.find_job_set("other") is not None
        assert world.find_job_set("widget") is None
        message = "plugin Widgets cannot watch widgets: widgets.example.com is not served by this API server"
        assert message in world.status("widget")["message"]
        await world.define(WIDGETS)
        await world.settle(10)
        assert world.find(WIDGETS, "widget-w") is not None
        assert world.find_job_set("widget") is not None


async def test_a_watch_that_is_forbidden_concerns_only_the_jobs_that_need_it() -> None:
    async with World(plugins=[Widgets()], kinds=[WIDGETS], start=False) as world:
        world.refuse(403, 'User "x" cannot list resource "widgets"', path="/apis/example.com/v1/widgets")
        await world.start()
        assert world.operator.is_ready
        for name in ("widget", "other"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(1)
        assert world.find_job_set("other") is not None
        assert world.find_job_set("widget") is None
        message = 'plugin Widgets cannot watch widgets: User "x" cannot list resource "widgets"'
        assert world.status("widget")["message"] == f"{message}. {SEE_PLUGINS}"
        [event] = world.all(EVENTS)
        assert message in event["message"]
        world.mend()
        await world.settle(60)
        assert world.find_job_set("widget") is not None
        assert "cannot watch" not in world.status("widget")["message"]


async def test_objects_that_cannot_be_decoded_concern_only_the_jobs_that_need_them() -> None:
    class Odd(msgspec.Struct, frozen=True):
        metadata: ObjectMeta
        spec: int = 0

    class Misread(Widgets):
        def watches(self) -> Iterator[Watch]:
            yield Watch(WIDGETS, Odd)

    async with World(plugins=[Misread()], kinds=[WIDGETS], start=False) as world:
        labels = {"app.kubernetes.io/managed-by": "trainwright"}
        await world.add(WIDGETS, {"metadata": {"name": "x", "labels": labels}, "spec": {}})
        await world.start()
        assert world.operator.is_ready
        for name in ("widget", "other"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(1)
        assert world.find_job_set("other") is not None
        assert "plugin Widgets cannot watch widgets: " in world.status("widget")["message"]
        assert "Expected `int`, got `object`" in world.status("widget")["message"]


async def test_watches_that_raise_are_logged_by_name_and_concern_only_the_jobs_that_need_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Raises(Widgets):
        def watches(self) -> Iterator[Watch]:
            raise ZeroDivisionError("a bug of mine")

    async with World(plugins=[Raises()], kinds=[WIDGETS]) as world:
        assert "plugin Widgets failed in watches: a bug of mine" in caplog.text
        assert world.operator.is_ready
        for name in ("widget", "other"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(1)
        assert world.find_job_set("other") is not None
        assert world.status("widget")["message"] == f"plugin Widgets failed in watches: a bug of mine. {SEE_PLUGINS}"


async def test_a_watch_that_is_taken_away_is_told_by_the_jobs_whose_workload_it_shows() -> None:
    async with World(plugins=[PlainJob()]) as world:
        for name in ("plain", "other"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(1)
        await world.run_job("plain")
        await world.settle(1)
        assert world.status("plain")["state"] == "Running"
        world.refuse(403, "cannot watch resource jobs", path="/apis/batch/v1/jobs")
        await world.server.restart()  # every watch ends, as it does every few minutes
        await world.settle(5)
        assert (
            world.status("plain")["message"]
            == f"plugin PlainJob cannot watch jobs: cannot watch resource jobs. {SEE_PLUGINS}"
        )
        assert world.status("plain")["state"] == "Running"
        assert world.status("other")["message"] == "waiting for the first pods"
        world.mend()
        await world.settle(60)
        assert world.status("plain")["message"] == "running: node"


# A workload of one's own


async def test_a_job_runs_as_the_workload_of_a_plugin_to_its_end() -> None:
    async with World(plugins=[PlainJob()]) as world:
        await world.add(TRAIN_JOBS, train_job("plain"))
        await world.settle(1)
        assert world.find_job_set("plain") is None
        job = world.get(JOBS, "plain")
        assert job["metadata"]["annotations"]["trainwright.dev/workload"] == "PlainJob"
        assert job["metadata"]["annotations"]["trainer.kubeflow.org/runtime-revision"]
        await world.run_job("plain")
        await world.settle(1)
        assert (world.status("plain")["state"], world.status("plain")["message"]) == ("Running", "running: node")
        await world.finish_job("plain")
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        assert world.status("plain")["conditions"][0]["message"] == "the Job says so"
        await world.remove(JOBS, "plain")
        await world.settle(60)
        assert world.find(JOBS, "plain") is None


async def test_a_workload_of_any_kind_goes_at_the_deadline() -> None:
    async with World(plugins=[PlainJob()]) as world:
        await world.add(TRAIN_JOBS, train_job("plain", activeDeadlineSeconds=30))
        await world.settle(28)
        assert world.find(JOBS, "plain") is not None
        await world.settle(5)
        assert world.status("plain")["conditions"][0]["reason"] == "DeadlineExceeded"
        assert world.find(JOBS, "plain") is None


async def test_a_workload_of_any_kind_is_suspended_and_resumed_and_built_again_when_deleted() -> None:
    async with World(plugins=[PlainJob()]) as world:
        first = None
        for suspend in (True, False, True, False):
            if first is None:
                await world.add(TRAIN_JOBS, train_job("plain", suspend=suspend))
            else:
                await world.change(TRAIN_JOBS, "plain", {"spec": {"suspend": suspend}})
            await world.settle(1)
            job = world.get(JOBS, "plain")
            assert job["spec"]["suspend"] is suspend
            first = first or job["metadata"]["uid"]
            assert job["metadata"]["uid"] == first
        await world.remove(JOBS, "plain")
        await world.settle(2)
        job = world.get(JOBS, "plain")
        assert job["metadata"]["uid"] != first
        written = len(world.writes)
        await world.settle(600)
        assert len(world.writes) == written


async def test_a_status_that_raises_is_told_by_name_changes_nothing_and_harms_nobody_else() -> None:
    plugin = PlainJob()
    async with World(plugins=[plugin]) as world:
        for name in ("plain", "other"):
            await world.add(TRAIN_JOBS, train_job(name))
        await world.settle(1)
        await world.run_job("plain")
        await world.settle(1)
        job = world.get(JOBS, "plain")
        plugin.fault = ZeroDivisionError("a bug of mine")
        await world.finish_job_set(name="other")
        await world.finish_job("plain")
        await world.settle(5)
        assert world.status("other")["state"] == "Complete"
        assert world.status("plain")["state"] == "Running"
        assert world.status("plain")["message"] == f"plugin PlainJob failed in status: a bug of mine. {SEE_PLUGINS}"
        events = world.all(EVENTS)
        assert [event["involvedObject"]["name"] for event in events] == ["plain"]
        now = world.get(JOBS, "plain")
        assert now["metadata"]["uid"] == job["metadata"]["uid"]
        plugin.fault = None
        await world.settle(120)
        assert world.status("plain")["state"] == "Complete"


async def test_plugins_that_change_serve_the_next_job_without_a_restart() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job("plain-before"))
        await world.settle(1)
        world.operator.use(load(discovered={"PlainJob": PlainJob}))
        await world.add(TRAIN_JOBS, train_job("plain"))
        await world.settle(1)
        assert world.find(JOBS, "plain") is not None
        assert world.find_job_set("plain") is None
        assert world.find_job_set("plain-before") is not None
        assert world.find(JOBS, "plain-before") is None
        await world.finish_job("plain")
        await world.settle(1)
        assert world.status("plain")["state"] == "Complete"
        world.operator.use(load(discovered={}))
        await world.add(TRAIN_JOBS, train_job("plain-after"))
        await world.settle(1)
        assert world.find_job_set("plain-after") is not None


async def test_a_resumed_job_says_that_plugins_changed_since_it_started() -> None:
    def digest(world: World) -> str | None:
        found: str | None = world.job_set()["metadata"]["annotations"].get("trainwright.dev/plugins")
        return found

    def told(world: World) -> list[str]:
        return [event["reason"] for event in world.all(EVENTS) if event["type"] == "Normal"]

    first, second = (Framework(load(discovered={}).plugins, digest=text) for text in ("d1", "d2"))
    async with World() as world:
        world.operator.use(first)
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(1)
        assert digest(world) == "d1"
        world.operator.use(second)
        await world.settle(1)
        assert digest(world) == "d1"  # a running job is left alone
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": True}})
        await world.settle(1)
        assert digest(world) == "d1"
        assert told(world) == []
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.settle(1)
        assert digest(world) == "d2"
        assert told(world) == ["PluginsChanged"]


async def test_a_plugin_that_comes_later_leaves_a_suspended_job_its_workload() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job("plain", suspend=True))
        await world.settle(1)
        before = world.job_set("plain")["metadata"]["uid"]
        world.operator.use(load(discovered={"PlainJob": PlainJob}))
        await world.change(TRAIN_JOBS, "plain", {"spec": {"suspend": False}})
        await world.settle(1)
        assert world.find(JOBS, "plain") is None
        after = world.job_set("plain")
        assert (after["metadata"]["uid"], after["spec"]["suspend"]) == (before, False)
