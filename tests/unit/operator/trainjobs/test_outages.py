"""The API server is away: the operator keeps its process, writes nothing, and acts soon after the server is back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from trainwright.api.configuration import Configuration, LeaderElectionConfig, local
from trainwright.api.resources import JOB_SETS, NAMESPACES, TRAIN_JOBS
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.testing.faults import DropBefore
from unit.operator.world import World, train_job

SOON = 5.0


def configuration(*, elected: bool) -> Configuration:
    election = LeaderElectionConfig(leader_elect=True, resource_name="lease") if elected else None
    return msgspec.structs.replace(local(), leader_election=election)


@asynccontextmanager
async def operated(*, elected: bool) -> AsyncIterator[World]:
    """A world whose operator leads."""
    async with World(configuration=configuration(elected=elected), start=False) as world:
        await world.add(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await world.start()
        await world.settle(5)
        yield world


@pytest.mark.parametrize("elected", [True, False], ids=["with election", "without"])
@pytest.mark.parametrize("seconds", [5, 20, 60, 600])
async def test_the_operator_acts_within_five_seconds_of_the_servers_return(seconds: float, elected: bool) -> None:
    async with operated(elected=elected) as world:
        await world.add(TRAIN_JOBS, train_job("before"))
        await world.settle(2)
        world.fail(DropBefore())
        await world.add(TRAIN_JOBS, train_job("meanwhile"))
        await world.settle(seconds)
        assert world.find_job_set("meanwhile") is None
        world.mend()
        await world.settle(SOON)
        assert world.find_job_set("meanwhile") is not None
        await world.finish_job_set(name="before")
        await world.settle(SOON)
        assert world.status("before")["state"] == "Complete"
        assert sorted(world.names(JOB_SETS)) == ["before", "meanwhile"]


async def test_the_log_says_since_when_nobody_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with operated(elected=True) as world:
        world.fail(DropBefore())
        await world.settle(60)
        assert "the API server has not answered since" in caplog.text
        assert "nothing is written until this process leads again" in caplog.text
        world.mend()
        await world.settle(SOON)
        assert "the API server answers again, after" in caplog.text
