"""Many TrainJobs at once: their workloads come first, and what can wait does."""

from __future__ import annotations

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.operator.statuses import BURST_LOOK_SECONDS, BURST_SECONDS, MERGE_SECONDS
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
