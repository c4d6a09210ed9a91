"""Memory is given back after work, and only then."""

from __future__ import annotations

import asyncio

import pytest

from trainwright.controlloop import VirtualClock
from trainwright.operator.memory import LOOK_SECONDS, Trimming, give_back


async def test_memory_is_given_back_once_after_each_burst_of_work() -> None:
    clock, work, given = VirtualClock(), 0, 0

    def trim() -> None:
        nonlocal given
        given += 1

    running = asyncio.create_task(Trimming(lambda: work, clock, trim).run())
    try:
        seen = []
        for done in (0, 0, 5, 9, 9, 9, 9, 10, 10, 10):  # what has been done at each look
            work = done
            await clock.advance(LOOK_SECONDS)
            seen.append(given)
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert seen == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_giving_back_does_no_harm_where_there_is_nothing_to_give() -> None:
    kept = [bytes(10_000) for _ in range(100)]
    give_back()
    assert all(part == bytes(10_000) for part in kept)
