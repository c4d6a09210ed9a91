"""A work queue with client-go's guarantees, on one event loop.

1. Fair: keys come out in the order they went in, and shares (namespaces) take turns. Those added with `first` come
   before the others, seven of them for one of the others where both wait, so that nobody waits for ever.
2. Stingy: a key that is added several times before it is processed is processed once.
3. Exclusive: two workers never process the same key; a key that is added meanwhile is processed again afterwards.
4. Delayed: `add_after` keeps the earliest of several times; `retry` waits twice as long after each failure in a row.
5. Closing: `close` wakes all workers; a worker finishes the key that it is processing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from trainwright.clock import Clock, Timer
from trainwright.controlloop.metrics import Metrics, NoMetrics
from trainwright.controlloop.turns import Turns

K = TypeVar("K", bound=Hashable)

FIRST_RETRY_SECONDS = 0.005
LAST_RETRY_SECONDS = 60.0
TURNS = 8  # of so many keys at least one is not a preferred one


class WorkQueue(Generic[K]):
    """`share` says whose a key is; without it all are one's."""

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "",
        metrics: Metrics | None = None,
        share: Callable[[K], Hashable] = lambda key: None,
    ) -> None:
        self._clock = clock
        self._name = name
        self._metrics = metrics or NoMetrics()
        self._queue: Turns[K] = Turns(share)  # in order; queue ⊆ dirty, queue ∩ processing = ∅; so with `first`
        self._first: Turns[K] = Turns(share)  # queue ∩ first = ∅
        self._turn = 0  # counts keys that came out, to take turns between the two
        self._preferred: set[K] = set()  # ⊆ dirty ∩ processing: goes into `first` when it is done
        self._dirty: set[K] = set()  # needs work: in the queue, or being processed and added again
        self._processing: set[K] = set()  # a worker has it
        self._added_at: dict[K, float] = {}  # keys of queue → when they became ready
        self._delayed: dict[K, tuple[float, Timer]] = {}  # not ready yet; may overlap with dirty
        self._failures: dict[K, int] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()  # workers with nothing to do
        self._closed = False

    def __len__(self) -> int:
        return len(self._queue) + len(self._first)

    def add(self, key: K, *, first: bool = False) -> None:
        if self._closed or key in self._dirty:
            return
        self._metrics.queue_added(self._name)
        self._dirty.add(key)
        if key not in self._processing:
            self._enqueue(key, first)
        elif first:
            self._preferred.add(key)

    def add_after(self, key: K, seconds: float) -> None:
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if key in self._delayed:
            earlier, timer = self._delayed[key]
            if earlier <= due:
                return
            timer.cancel()
        self._delayed[key] = (due, self._clock.call_later(seconds, lambda: self._ripen(key)))

    def retry(self, key: K, *, at_least: float = 0.0, at_most: float = LAST_RETRY_SECONDS) -> float:
        """Adds the key again after its back-off; returns the seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = max(at_least, min(at_most, FIRST_RETRY_SECONDS * 2.0 ** min(failures, 30)))
        self._metrics.queue_retried(self._name)
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Resets the back-off of a key that succeeded."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> K | None:
        """The next key, exclusive to the caller until `done`; None when the queue is closed."""
        while not self._queue and not self._first:
            if self._closed:
                return None
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled() and len(self):
                    self._wake()  # we were woken for a key that somebody else must take now
                raise
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        self._turn += 1
        prefers = self._first and (not self._queue or self._turn % TURNS != 0)
        key = (self._first if prefers else self._queue).popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        self._metrics.queue_taken(self._name, len(self), self._clock.now() - self._added_at.pop(key))
        return key

    def done(self, key: K) -> None:
        self._processing.discard(key)
        if key in self._dirty:
            first = key in self._preferred
            self._preferred.discard(key)
            self._enqueue(key, first)

    def close(self) -> None:
        self._closed = True
        for _, timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        while self._waiting:
            self._wake()

    def _ripen(self, key: K) -> None:
        self._delayed.pop(key, None)
        self.add(key)

    def _enqueue(self, key: K, first: bool) -> None:
        (self._first if first else self._queue).append(key)
        self._added_at[key] = self._clock.now()
        self._metrics.queue_depth(self._name, len(self))
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
