"""A controller: a queue of keys, the sources that fill it, and workers that empty it through one reconcile function.

A reconcile has four outcomes: done, again later, failed (again with back-off), and cancelled. A conflict is an expected
failure: it is retried soon and not logged. After a 429 the retry waits at least as long as the server asks. Whatever a
reconcile asks for, `FIRST_RETRY_SECONDS` pass before it is called again without a change: none can spin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any

from trainwright.client import ClientError, Conflict, Forbidden
from trainwright.client.errors import ApiError, is_away
from trainwright.clock import Clock, SystemClock
from trainwright.controlloop.metrics import Metrics, NoMetrics
from trainwright.controlloop.outcome import After, Key, NotYet, Reconcile
from trainwright.controlloop.queue import FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS, WorkQueue
from trainwright.controlloop.source import Watches
from trainwright.controlloop.store import Delta

log = logging.getLogger(__name__)

CONFLICT_RETRY_SECONDS = 1.0
YIELD_EVERY = 8
FORBIDDEN_RETRY_SECONDS = 30.0
AWAY_RETRY_SECONDS = 4.0


class Controller:
    """Runs in a `Manager`. `add(key)` requests a reconcile from outside, such as from a timer or another controller.

    `begin` is awaited before the first reconcile, for what else had better be there.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        watches: Sequence[Watches],
        *,
        workers: int = 1,
        begin: Callable[[], Awaitable[object]] | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.name = name
        self.watches = list(watches)
        self._reconcile = reconcile
        self._workers = workers
        self._begin = begin
        self._busy = 0
        self._clock = clock or SystemClock()
        self._metrics = metrics or NoMetrics()
        self.queue: WorkQueue[Key] = WorkQueue(
            self._clock, name=name, metrics=self._metrics, share=attrgetter("namespace")
        )
        for watch in self.watches:
            watch.source.listen(self._listener(watch))

    def add(self, key: Key) -> None:
        self.queue.add(key)

    def listen_to(self, watch: Watches) -> None:
        """Adds a source while the controller runs. The controller does not wait for its first list."""
        watch.source.listen(self._listener(watch))

    async def run(self) -> None:
        """Reconciles until cancelled, once every source has been listed."""
        for watch in self.watches:
            await watch.source.wait_synced()
        if self._begin is not None:
            await self._begin()
        self._look_at_all()
        self._metrics.workers(self.name, 0, self._workers)
        async with asyncio.TaskGroup() as workers:
            for number in range(self._workers):
                workers.create_task(self._work(), name=f"{self.name}-{number}")

    def _look_at_all(self) -> None:
        """What was in hand when a former leadership ended was dropped. At the first start the queue has all keys."""
        for watch in self.watches:
            for thing in watch.source.store:
                for key in watch.keys_of(thing):
                    self.queue.add(key)

    def _listener(self, watch: Watches) -> Callable[[Delta[Any]], None]:
        def listen(delta: Delta[Any]) -> None:
            if watch.is_known(delta):
                return
            first = watch.new_first and delta.old is None
            for side in (delta.old, delta.new):
                if side is not None:
                    for key in watch.keys_of(side):
                        self.queue.add(key, first=first)

        return listen

    async def _work(self) -> None:
        done = 0
        while (key := await self.queue.get()) is not None:
            done += 1
            if done % YIELD_EVERY == 0:
                await asyncio.sleep(0)  # thousands of keys with nothing to do must not hold up everybody else
            started = self._clock.now()
            self._busy += 1
            self._metrics.workers(self.name, self._busy, self._workers)
            try:
                result = await self._work_on(key)
            finally:
                self._busy -= 1
                self.queue.done(key)
            seconds = self._clock.now() - started
            self._metrics.workers(self.name, self._busy, self._workers)
            self._metrics.worked(self.name, seconds)
            self._metrics.reconciled(self.name, result, seconds)

    async def _work_on(self, key: Key) -> str:
        try:
            outcome = await self._reconcile(key)
        except Conflict as error:
            log.debug("%s %s: %s", self.name, key, error)
            self.queue.retry(key, at_most=CONFLICT_RETRY_SECONDS)
            return "error"
        except Exception as error:  # noqa: BLE001 - the worker loop: one object's failure must not stop the others
            self._failed(key, error)
            return "error"
        self.queue.forget(key)
        if isinstance(outcome, After):
            self.queue.add_after(key, max(outcome.seconds, FIRST_RETRY_SECONDS))
            return "requeue_after"
        return "success"

    def _failed(self, key: Key, error: Exception) -> None:
        at_least = 0.0
        cause = error.__cause__ if isinstance(error, NotYet) else error
        if isinstance(cause, Forbidden):
            at_least = FORBIDDEN_RETRY_SECONDS  # RBAC does not change by itself: no hot loop
        elif isinstance(cause, ApiError) and cause.retry_after:
            at_least = cause.retry_after
        at_most = max(at_least, LAST_RETRY_SECONDS)
        if is_away(cause):
            at_most = AWAY_RETRY_SECONDS  # it has nothing to do with this key: act soon when the server is back
        if isinstance(error, NotYet) and error.within is not None:
            at_most = min(at_most, max(error.within, FIRST_RETRY_SECONDS))
        seconds = self.queue.retry(key, at_least=min(at_least, at_most), at_most=at_most)
        fields = {"controller": self.name, "namespace": key.namespace, "object": key.name, "error": str(error)}
        extra = {"fields": {**fields, "retrySeconds": round(seconds, 3)}}
        if isinstance(error, (ClientError, NotYet)):
            log.warning("%s %s: %s; again in %.1f s", self.name, key, error, seconds, extra=extra)
        else:
            log.error("%s %s: %r; again in %.1f s", self.name, key, error, seconds, exc_info=error, extra=extra)
