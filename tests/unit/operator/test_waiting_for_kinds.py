"""An operator that begins waits for the kinds that can be a workload, but not for long, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc

import pytest

from trainwright.clock import VirtualClock
from trainwright.operator.stores.kinds import PATIENCE_SECONDS, Kinds
from trainwright.plugins import load


async def test_a_kind_that_stays_silent_is_waited_for_ten_seconds() -> None:
    clock = VirtualClock()
    waiting = asyncio.create_task(Kinds(load()).wait_for_workloads(clock))
    await clock.advance(PATIENCE_SECONDS - 0.1)
    assert not waiting.done()
    await clock.advance(0.2)
    assert waiting.done()
    await waiting


async def test_an_operator_that_is_stopped_meanwhile_leaves_no_exception_that_nobody_retrieves() -> None:
    found: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: found.append(str(context["message"])))
    clock = VirtualClock()
    waiting = asyncio.create_task(Kinds(load()).wait_for_workloads(clock))
    await clock.advance(1.0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del waiting
    await clock.settle()
    gc.collect()
    assert found == []
