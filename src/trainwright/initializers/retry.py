"""Trying again: back-off that grows, and a deadline that any progress moves on.

The deadline is for silence, not for the whole: a slow download may take days, a dead network ends it after
`seconds` without a byte.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trainwright.clock import Clock
from trainwright.initializers.errors import Transient, Unreachable

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0

Result = TypeVar("Result")


class Patience:
    """How long one request may go on failing. One for each file or range; `what` is named when it ends."""

    def __init__(self, what: str, seconds: float, clock: Clock, say: Callable[[str], None]) -> None:
        self._what = what
        self._seconds = seconds
        self._clock = clock
        self._say = say
        self._since = clock.now()
        self._tries = 0
        self._furthest = 0

    def reached(self, position: int) -> None:
        """Moves the deadline on if `position` is further than ever before. A transfer that starts over does not."""
        if position > self._furthest:
            self._furthest = position
            self._since = self._clock.now()
            self._tries = 0

    async def pause(self, fault: Transient) -> None:
        """Wait before the next try; raises `Unreachable` when the deadline has passed."""
        left = self._seconds - (self._clock.now() - self._since)
        if left <= 0:
            raise Unreachable(
                f"{self._what}: {fault.reason}; given up after {self._seconds:g} s without a byte. Check the network "
                f"and the address, then run it again: what was fetched is kept"
            ) from fault
        if self._tries == 0:
            self._say(f"{self._what}: {fault.reason}; trying again for {left:.0f} s")
        pause = fault.retry_after
        if pause is None:
            # Between half and all of it, so that many initializers do not come back in step.
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._tries) * random.uniform(0.5, 1)  # noqa: S311
        self._tries += 1
        await self._clock.sleep(min(pause, left))


async def persist(patience: Patience, ask: Callable[[], Awaitable[Result]]) -> Result:
    """The answer to a question that may be asked again as a whole, such as one page of a listing."""
    while True:
        try:
            return await ask()
        except Transient as fault:
            await patience.pause(fault)
