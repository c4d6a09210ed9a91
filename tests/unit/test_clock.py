"""The clock that tests turn: time stands still, wakes sleepers in order, and waits for no wall clock."""

from __future__ import annotations

import asyncio

import pytest

from selfcheck.leftovers import Tasks
from trainwright.clock import VirtualClock, happens_within


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now() - 1000.0))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 20.0), ("early", 5.0), ("later", 30.0)):
            group.create_task(sleeper(name, seconds))
        await clock.advance(19.0)
        assert woken == [("early", 5.0)]
        await clock.advance(11.0)
    assert woken == [("early", 5.0), ("late", 20.0), ("later", 30.0)]


async def test_settling_follows_a_chain_of_any_length() -> None:
    clock = VirtualClock()
    steps = 0

    async def chain() -> None:
        nonlocal steps
        while steps < 5_000:
            steps += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(chain())
        await clock.settle()
        assert steps == 5_000


async def test_what_never_comes_to_rest_is_reported(monkeypatch: pytest.MonkeyPatch, tasks: Tasks) -> None:
    monkeypatch.setattr(VirtualClock, "MOST_TURNS", 1_000)

    async def restless() -> None:
        while True:
            await asyncio.sleep(0)

    tasks.start(restless())
    with pytest.raises(RuntimeError, match="never settle"):
        await VirtualClock().settle()


async def test_a_future_is_waited_for_no_longer_than_allowed(tasks: Tasks) -> None:
    clock = VirtualClock()
    happened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = tasks.start(happens_within(clock, 3.0, happened))
    await clock.advance(2.9)
    assert not waiting.done()
    await clock.advance(0.2)
    assert waiting.result() is False
    assert not happened.cancelled()
    again = tasks.start(happens_within(clock, 3.0, happened))
    await clock.settle()
    happened.set_result(None)
    await clock.settle()
    assert again.result() is True
