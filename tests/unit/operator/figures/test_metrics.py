"""Figures that mean what their names say, under the names and labels that dashboards read."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.operator.figures.metrics import OperatorMetrics
from unit.operator.world import World, train_job

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


async def test_a_jobs_life_is_counted_and_a_restart_does_not_count_it_again() -> None:
    async with World() as world:
        await world.add(TRAIN_JOBS, train_job())
        await world.settle()
        await world.settle(30)
        ready = [{"name": "node", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]
        await world.change_status(JOB_SETS, "job", {"replicatedJobsStatus": ready, "restarts": 2})
        await world.settle(1.5)
        await world.finish_job_set()
        await world.settle()
        value = world.operator.metrics.registry.get_sample_value
        assert value("trainwright_trainjobs_created_total", {"runtime": "it"}) == 1
        assert value("trainwright_trainjobs_finished_total", {"runtime": "it", "result": "Complete"}) == 1
        assert value("trainwright_trainjob_restarts_total", {"runtime": "it"}) == 2
        time_to_running = "trainwright_trainjob_time_to_running_seconds_bucket"
        assert value(time_to_running, {"runtime": "it", "le": "60.0"}) == 1
        assert value(time_to_running, {"runtime": "it", "le": "10.0"}) == 0
        assert value("trainwright_trainjobs", {"state": "Complete"}) == 1
        reconciles = {"controller": "trainjob_controller", "result": "success"}
        assert (value("controller_runtime_reconcile_total", reconciles) or 0) > 0
        await world.restart()
        value = world.operator.metrics.registry.get_sample_value
        assert value("trainwright_trainjobs_created_total", {"runtime": "it"}) is None
        assert value("trainwright_trainjobs", {"state": "Complete"}) == 1
