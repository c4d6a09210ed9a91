"""Figures that mean what their names say, under the names and labels that dashboards read."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.operator.figures.metrics import OperatorMetrics
from trainwright.pipeline.devices import parse_devices
from trainwright.schema.jsonobject import Json
from unit.operator.world import World, runtime, train_job

CONTROLLER, QUEUE = {"controller": "c"}, {"name": "c", "controller": "c"}


@pytest.fixture
def registry() -> CollectorRegistry:
    """The registry after one of everything has happened."""
    metrics = OperatorMetrics()
    metrics.reconciled("c", "error", 0.02)
    metrics.queue_added("c")
    metrics.queue_depth("c", 3)
    metrics.queue_taken("c", 2, 0.5)
    metrics.queue_retried("c")
    metrics.worked("c", 0.5)
    metrics.workers("c", 1, 4)
    metrics.leading("lease", True)
    metrics.requested("GET", "200", "api:443")
    metrics.admitted("/validate", 200, 0.02)
    return metrics.registry


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("controller_runtime_reconcile_total", {**CONTROLLER, "result": "error"}, 1),
        ("controller_runtime_reconcile_errors_total", CONTROLLER, 1),
        ("controller_runtime_reconcile_time_seconds_sum", CONTROLLER, 0.02),
        ("controller_runtime_reconcile_time_seconds_bucket", {**CONTROLLER, "le": "0.01"}, 0),
        ("controller_runtime_reconcile_time_seconds_bucket", {**CONTROLLER, "le": "0.025"}, 1),
        ("controller_runtime_max_concurrent_reconciles", CONTROLLER, 4),
        ("controller_runtime_active_workers", CONTROLLER, 1),
        ("workqueue_depth", QUEUE, 2),
        ("workqueue_adds_total", QUEUE, 1),
        ("workqueue_queue_duration_seconds_count", QUEUE, 1),
        ("workqueue_work_duration_seconds_bucket", {**QUEUE, "le": "+Inf"}, 1),
        ("workqueue_retries_total", QUEUE, 1),
        ("leader_election_master_status", {"name": "lease"}, 1),
        ("rest_client_requests_total", {"code": "200", "method": "GET", "host": "api:443"}, 1),
        ("controller_runtime_webhook_requests_total", {"webhook": "/validate", "code": "200"}, 1),
        ("controller_runtime_webhook_latency_seconds_count", {"webhook": "/validate"}, 1),
    ],
)
def test_every_series_keeps_its_name_and_labels(
    registry: CollectorRegistry, name: str, labels: dict[str, str], value: float
) -> None:
    assert registry.get_sample_value(name, labels) == value


def test_the_process_is_measured_when_somebody_looks(registry: CollectorRegistry) -> None:
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"):
        assert (registry.get_sample_value(name) or 0) > 0
    assert registry.get_sample_value("python_gc_collections_total", {"generation": "0"}) is not None


def test_no_series_tells_when_another_was_created(registry: CollectorRegistry) -> None:
    names = {sample.name for family in registry.collect() for sample in family.samples}
    assert not {name for name in names if name.endswith("_created")}


HERE = {"runtime": "it", "namespace": "ns"}


def parts(**counts: int) -> Json:
    zeros = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    return {"replicatedJobsStatus": [{"name": "node", **zeros, **counts}]}


class Figures:
    """The series of the world's operator."""

    def __init__(self, world: World) -> None:
        self._value = world.operator.metrics.registry.get_sample_value

    def __call__(self, name: str, **labels: str) -> float | None:
        return self._value(f"trainwright_{name}", {**HERE, **labels})

    def within(self, name: str, low: float, high: float, **labels: str) -> bool:
        """Whether there is one duration, and it is between these."""
        total = self(f"{name}_seconds_sum", **labels)
        return self(f"{name}_seconds_count", **labels) == 1 and total is not None and low <= total <= high


async def test_a_jobs_life_is_counted_and_a_restart_does_not_count_it_again() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(30)
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await world.settle(40)
        await world.change_status(JOB_SETS, "job", {**parts(active=1, ready=1), "restarts": 2})
        await world.settle(1.5)
        await world.finish_job_set()
        await world.settle()
        of = Figures(world)
        assert of("trainjobs_created_total") == 1
        assert of("trainjobs_finished_total", result="Complete") == 1
        assert of("trainjob_restarts_total") == 2
        assert of.within("trainjob_time_to_workload", 0, 2)
        assert of.within("trainjob_time_to_first_pod", 30, 33)
        assert of.within("trainjob_time_to_running", 70, 73)
        assert of("trainjob_time_to_running_seconds_bucket", le="60.0") == 0
        assert of("trainjob_time_to_running_seconds_bucket", le="120.0") == 1
        assert of.within("trainjob_duration", 71, 75, result="Complete")
        assert of("trainjob_queue_seconds_count") is None, "it was never suspended"
        value = world.operator.metrics.registry.get_sample_value
        assert value("trainwright_trainjobs", {"state": "Complete"}) == 1
        reconciles = {"controller": "trainjob_controller", "result": "success"}
        assert (value("controller_runtime_reconcile_total", reconciles) or 0) > 0
        await world.restart()
        of, value = Figures(world), world.operator.metrics.registry.get_sample_value
        assert of("trainjobs_created_total") is None
        assert of("trainjob_time_to_running_seconds_count") is None
        assert value("trainwright_trainjobs", {"state": "Complete"}) == 1


async def test_the_time_in_a_queue_is_no_part_of_the_start_and_outlives_the_operator() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job(suspend=True))
        await world.settle(100)
        await world.restart()
        await world.settle(500)
        await world.change(TRAIN_JOBS, "job", {"spec": {"suspend": False}})
        await world.settle(20)
        await world.change_status(JOB_SETS, "job", parts(active=1, ready=1))
        await world.settle(2)
        of = Figures(world)
        assert of.within("trainjob_queue", 598, 605)
        assert of.within("trainjob_time_to_first_pod", 19, 23)
        assert of.within("trainjob_time_to_running", 19, 24)
        # Pods that come back after a failure are no second start.
        await world.change_status(JOB_SETS, "job", parts(active=1))
        await world.settle(20)
        await world.change_status(JOB_SETS, "job", parts(active=1, ready=1))
        await world.settle(20)
        assert of("trainjob_time_to_running_seconds_count") == 1
        assert of("trainjob_time_to_first_pod_seconds_count") == 1


async def test_gpu_seconds_are_those_of_pods_that_are_ready() -> None:
    body = runtime()
    [node] = body["spec"]["template"]["spec"]["replicatedJobs"]
    container = node["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": "4", "cpu": "8"}}
    async with World(runtimes=[body]) as world:
        await world.add(TRAIN_JOBS, train_job(trainer={"numNodes": 2}))
        await world.settle(50)
        of, gpu = Figures(world), {"resource": "nvidia.com/gpu"}
        assert world.job_set()["metadata"]["annotations"]["trainwright.dev/devices"] == "node:nvidia.com/gpu=8"
        assert of("gpus", **gpu) is None
        await world.change_status(JOB_SETS, "job", parts(active=1, ready=1))
        await world.settle(100)
        assert of("gpus", **gpu) == 8
        assert 780 <= (of("gpu_seconds_total", **gpu) or 0) <= 820
        await world.settle(100)
        await world.change_status(JOB_SETS, "job", parts(active=1))  # a restart: the GPUs idle
        await world.settle(1000)
        assert of("gpus", **gpu) == 0
        assert 1580 <= (of("gpu_seconds_total", **gpu) or 0) <= 1620
        await world.change_status(JOB_SETS, "job", parts(active=1, ready=1))
        await world.settle(100)
        await world.remove(TRAIN_JOBS, "job")
        await world.settle(1000)
        assert of("gpus", **gpu) == 0
        assert 2380 <= (of("gpu_seconds_total", **gpu) or 0) <= 2430


def test_what_a_workload_says_of_its_devices_is_read_as_written() -> None:
    text = "node:nvidia.com/gpu=8*,launcher:nvidia.com/mig-1g.5gb=1"
    assert ",".join(map(str, parse_devices(text))) == text
    assert parse_devices("node:,=1,x:y=z,") == []
    assert parse_devices(None) == []
