"""What a controller still has to look at: names and keys, each looked at until it is done.

Level-based: `look` decides from the present state, so a name that is added twice is looked at once, and one that is
lost would only come later. A name that is not done yet comes again by itself; one whose look fails comes again with
growing delay, and does not disturb the others.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from trainwright.clock import Clock, Timer
from trainwright.embedded.apiserver.errors import StatusError

log = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
AGAIN_SECONDS = 1.0
LONGEST_SECONDS = 60.0


class Worklist(Generic[K]):
    """`add` notes what to look at; `run` looks, at `at_once` of them at a time, whose writes then go to disk together.
    `gather` lets a burst of changes arrive before each round.
    """

    def __init__(
        self, name: str, clock: Clock, look: Callable[[K], Awaitable[bool]], gather: float, *, at_once: int = 1
    ) -> None:
        self._name = name
        self._clock = clock
        self._look = look
        self._gather = gather
        self._at_once = at_once
        self._todo: dict[K, None] = {}  # in the order they came
        self._later: dict[K, Timer] = {}  # not done yet; may overlap with todo
        self._failures: dict[K, int] = {}  # defects met in a row
        self._wake = asyncio.Event()

    def __contains__(self, key: K) -> bool:
        return key in self._todo or key in self._later

    def add(self, key: K) -> None:
        self._todo[key] = None
        self._wake.set()

    def clear(self) -> None:
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()
        self._todo.clear()

    async def run(self, before: Callable[[], Awaitable[None]]) -> None:
        """Look at everything, round by round, until cancelled. `before` is awaited before each round."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._gather:
                await self._clock.sleep(self._gather)
            await before()
            todo, self._todo = iter(self._todo), {}
            while some := list(itertools.islice(todo, self._at_once)):
                await asyncio.gather(*map(self._work_on, some))

    async def _work_on(self, key: K) -> None:
        timer = self._later.pop(key, None)
        if timer is not None:
            timer.cancel()
        seconds = AGAIN_SECONDS
        try:
            if await self._look(key):
                self._failures.pop(key, None)
                return
        except StatusError as error:
            log.log(
                logging.DEBUG if error.code == 409 else logging.INFO, "%s: %s comes again: %s", self._name, key, error
            )
        except Exception:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            seconds = min(LONGEST_SECONDS, AGAIN_SECONDS * 2.0 ** min(failures, 10))
            log.exception("%s: %s could not be worked on and comes again in %g s", self._name, key, seconds)
        self._later[key] = self._clock.call_later(seconds, functools.partial(self.add, key))
