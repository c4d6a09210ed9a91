"""Many TrainJobs at once: their workloads come first, and what can wait does."""

from __future__ import annotations

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.operator.trainjobs.statuses import BURST_LOOK_SECONDS, BURST_SECONDS, MERGE_SECONDS
from unit.operator.world import World, train_job


def states(world: World) -> list[str]:
    return [job.get("status", {}).get("state", "") for job in world.server.list(TRAIN_JOBS, "ns")]


def job(number: int) -> dict[str, object]:
    made = train_job()
    made["metadata"]["name"] = f"job-{number:03}"
    return made


async def test_a_few_jobs_say_within_a_second_that_they_are_pending() -> None:
    async with World() as world:
        for number in range(5):
            await world.add(TRAIN_JOBS, job(number))
        await world.settle(MERGE_SECONDS + 0.1)
        assert states(world) == ["Pending"] * 5


async def test_a_state_is_written_when_its_second_is_over_though_the_clocks_figures_become_coarser() -> None:
    """From 1024 on a float has half as many places behind the point: there 1024.555 - 1023.555 is less than 1."""
    async with World() as world:
        await world.settle(1023.555 - world.clock.now())
        await world.add(TRAIN_JOBS, job(0))
        await world.settle(MERGE_SECONDS)
        assert states(world) == ["Pending"]


async def test_while_a_burst_lasts_every_job_gets_its_workload_and_the_states_wait() -> None:
    async with World() as world:
        for number in range(60):
            await world.add(TRAIN_JOBS, job(number))
            await world.settle(0.05)
        assert len(world.server.list(JOB_SETS, "ns")) == 60
        assert states(world) == [""] * 60
        await world.settle(MERGE_SECONDS + BURST_LOOK_SECONDS)
        assert states(world) == ["Pending"] * 60


async def test_a_burst_that_does_not_end_delays_no_state_for_ever() -> None:
    async with World() as world:
        for number in range(int(BURST_SECONDS / 0.05) + 20):
            await world.add(TRAIN_JOBS, job(number))
            await world.settle(0.05)
        assert states(world)[0] == "Pending"


def passes(world: World) -> float:
    """How often a TrainJob has been reconciled, whatever came of it."""
    value = world.operator.metrics.registry.get_sample_value
    name = "controller_runtime_reconcile_total"
    results = ("success", "requeue_after", "error")
    return sum(value(name, {"controller": "trainjob_controller", "result": result}) or 0 for result in results)


async def test_what_the_operator_wrote_itself_does_not_wake_it() -> None:
    """One pass builds the workload, one writes the status that could wait. The watch shows both writes, as news to
    nobody; a write of somebody else is looked at.
    """
    async with World() as world:
        await world.add(TRAIN_JOBS, job(0))  # the first job of a runtime changes the runtime, which wakes the job
        await world.settle(MERGE_SECONDS + 1)
        before = passes(world)
        await world.add(TRAIN_JOBS, job(1))
        await world.settle(MERGE_SECONDS + 1)
        assert states(world) == ["Pending"] * 2
        assert passes(world) - before == 2
        ready = [{"name": "node", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]
        await world.change_status(JOB_SETS, "job-001", {"replicatedJobsStatus": ready})
        await world.settle(MERGE_SECONDS + 1)
        assert passes(world) - before > 2
