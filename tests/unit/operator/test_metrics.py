"""Prometheus' text format, and figures that mean what their names say."""

from __future__ import annotations

from trainwright.operator.metrics import Counter, Gauge, Histogram, OperatorMetrics, Registry
from unit.operator.world import World, runtime, train_job


def test_counters_and_gauges_are_lines_with_escaped_labels() -> None:
    registry = Registry()
    counter, gauge = Counter("c_total", "Things", ("a", "b")), Gauge("g", "Now")
    registry.add(counter, gauge)
    counter.add("x", 'say "hi"\n\\')
    counter.add("x", 'say "hi"\n\\')
    gauge.set(to=1.5)
    assert registry.text() == (
        "# HELP c_total Things\n# TYPE c_total counter\n"
        'c_total{a="x",b="say \\"hi\\"\\n\\\\"} 2\n'
        "# HELP g Now\n# TYPE g gauge\ng 1.5\n"
    )


def test_a_histogram_counts_up_to_each_bound() -> None:
    it = Histogram("h", "Time", (), (0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 3.0):
        it.observe(value=value)
    assert list(it.lines()) == [
        'h_bucket{le="0.1"} 2',
        'h_bucket{le="1"} 3',
        'h_bucket{le="+Inf"} 4',
        "h_sum 3.65",
        "h_count 4",
    ]


def test_what_nobody_has_seen_is_left_out() -> None:
    registry = Registry()
    registry.add(Counter("quiet_total", "Never", ("a",)))
    assert "quiet" not in registry.text()


def test_the_process_is_measured_when_somebody_looks() -> None:
    text = OperatorMetrics().registry.text()
    assert "process_cpu_seconds_total" in text
    assert "process_resident_memory_bytes" in text


async def test_a_jobs_life_is_counted_and_a_restart_does_not_count_it_again() -> None:
    world = World()
    world.api.add("clustertrainingruntimes", runtime(), "")
    async with world:
        world.api.add("trainjobs", train_job())
        await world.settle()
        await world.settle(30)
        ready = [{"name": "node", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]
        world.api.change("jobsets", "job", {"status": {"replicatedJobsStatus": ready, "restarts": 2}})
        await world.settle()
        world.finish_job_set()
        await world.settle()
        text = world.operator.metrics.registry.text()
        assert 'trainwright_trainjobs_created_total{runtime="it"} 1' in text
        assert 'trainwright_trainjobs_finished_total{runtime="it",result="Complete"} 1' in text
        assert 'trainwright_trainjob_restarts_total{runtime="it"} 2' in text
        assert 'trainwright_trainjob_time_to_running_seconds_bucket{runtime="it",le="60"} 1' in text
        assert 'trainwright_trainjob_time_to_running_seconds_bucket{runtime="it",le="10"} 0' in text
        assert 'trainwright_trainjobs{state="Complete"} 1' in text
        assert 'controller_runtime_reconcile_total{controller="trainjob_controller",result="success"}' in text
        await world.restart()
        text = world.operator.metrics.registry.text()
        assert "trainwright_trainjobs_created_total" not in text
        assert 'trainwright_trainjobs{state="Complete"} 1' in text
