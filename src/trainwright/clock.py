"""Time, injected. What waits or measures asks a `Clock`, so that tests turn it by hand.

`now()` only ever goes forward and has no meaning but differences; `wall()` is seconds since the epoch. The module
stands below every room and imports none of them.
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import itertools
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float: ...

    def wall(self) -> float: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clocks and the running event loop."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def happens_within(clock: Clock, seconds: float, happened: asyncio.Future[Any]) -> bool:
    """Waits for a future, at most so long. Neither a timeout nor our own cancellation cancels it."""
    if happened.done():
        return True
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(seconds, lambda: None if over.done() else over.set_result(None))
    try:
        await asyncio.wait((happened, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
    return happened.done()


class deadline:
    """`async with deadline(clock, seconds):` raises `TimeoutError` if the block takes longer, by that clock."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._timer: Timer | None = None

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._timer = self._clock.call_later(self._seconds, self._end)

    def _end(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)


class _VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """A clock that stands still until a test advances it. What sleeps on it wakes in order of its time."""

    IDLE_TURNS = 3  # empty turns of the loop after which nothing is taken to be ready any more
    MOST_TURNS = 100_000

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self._now = 1000.0
        self._wall_at_zero = wall - self._now
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._wall_at_zero + self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = _VirtualTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, seconds), next(self._order), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await woken
        finally:
            timer.cancel()

    async def settle(self) -> None:
        """Lets every task run that can run without time passing, however many turns of the loop that takes.

        Only asyncio's own loop can tell whether anything is ready, and only by its queue of ready callbacks. Work in
        other threads is not waited for.
        """
        ready: collections.deque[Any] = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        idle = 0
        for _ in range(self.MOST_TURNS):
            await asyncio.sleep(0)
            idle = 0 if ready else idle + 1
            if idle == self.IDLE_TURNS:
                return
        raise RuntimeError("tasks keep each other busy without time passing: this will never settle")

    async def advance(self, seconds: float) -> None:
        """Moves time on, stopping at each timer on the way."""
        await self.settle()
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if timer.callback is not None:
                timer.callback()
                await self.settle()
        self._now = until
        await self.settle()

    def spend(self, seconds: float) -> None:
        """Time that a computation takes: it passes, and whoever should have woken meanwhile wakes late."""
        self._now += seconds

    def jump_wall(self, seconds: float) -> None:
        """An administrator sets the wall clock."""
        self._wall_at_zero += seconds
