"""Drives one source: lists and watches as the state machine says, and keeps the source's store.

All recovery rules are in `watching.step`; this file only turns its states into requests and their results into inputs.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import msgspec

from trainwright.client import Client, ClientError, NotFound, Unreachable
from trainwright.client import Expired as ExpiredError
from trainwright.client.errors import ApiError, DecodeError, Forbidden, is_away, not_served
from trainwright.clock import Clock
from trainwright.controlloop import watching
from trainwright.controlloop.outage import Outage
from trainwright.controlloop.source import Source

log = logging.getLogger(__name__)

WATCH_SECONDS = (300, 600)  # the server ends a watch after a random time in this span, so that they do not end together
IDLE_SECONDS = 120.0
STEADY_SECONDS = 30.0
GATHER_SECONDS = 0.02
"""In a burst, events are read some at a time: to be woken for each of them costs more than to work on it."""


class Informer:
    def __init__(
        self, client: Client, source: Source[Any], clock: Clock, jitter: Callable[[], float] = random.random
    ) -> None:
        self._client = client
        self._source = source
        self._clock = clock
        self._jitter = jitter
        self._decoder = msgspec.json.Decoder(source.decode)
        self._told: str | None = None  # the last failure that was logged: each is logged once
        self._outage = Outage.of(client)
        self._unreachable = False  # the last request found no server
        self._away = False  # nobody answered the last request
        self._expired = False  # the last failure was a version that is too old
        self._forbidden = False  # the last request was forbidden; a watch that opens shows that this is over

    async def run(self) -> None:
        """Until cancelled."""
        state: watching.State = watching.List()
        while True:
            match state:
                case watching.List():
                    state = self._step(state, await self._list())
                case watching.Watch():
                    state = await self._watch(state)
                case watching.Pause(seconds):
                    if state.absent:  # without the type there are no objects, and there will be no list to wait for
                        self._source.publish(self._source.store.replace(()))
                        self._source.synced(trouble=not_served(self._source.resource.group_resource))
                    if self._unreachable:
                        await self._outage.wait(self._clock, self, seconds)
                    else:
                        await self._clock.sleep(seconds)
                    state = self._step(state, watching.Elapsed())

    def _step(self, state: watching.State, happened: watching.Input) -> watching.State:
        return watching.step(state, happened, self._jitter)

    async def _list(self) -> watching.Input:
        source = self._source
        try:
            found = await self._client.list(
                source.resource,
                source.namespace,
                label_selector=source.label_selector,
                field_selector=source.field_selector,
                decode=msgspec.Raw,
                metadata_only=source.metadata_only,
                page_size=None,
            )
            # One by one, so that what is not kept of an object is gone before the next one is decoded.
            objects = [self._read(item) for item in found.items or ()]
        except ClientError as error:
            return self._failure(error)
        self._told = None
        self._is_reached()
        deltas = source.store.replace(objects)
        source.listed(found.resource_version)
        source.publish(deltas)
        source.synced()
        return watching.Listed(found.resource_version)

    async def _watch(self, state: watching.Watch) -> watching.State:
        source = self._source
        current: watching.State = state
        opened = self._clock.now()
        seconds = int(WATCH_SECONDS[0] + (WATCH_SECONDS[1] - WATCH_SECONDS[0]) * self._jitter())
        try:
            async with self._client.watch(
                source.resource,
                source.namespace,
                resource_version=state.version,
                label_selector=source.label_selector,
                field_selector=source.field_selector,
                timeout_seconds=seconds,
                idle_seconds=IDLE_SECONDS,
                gather_seconds=GATHER_SECONDS,
                decode=source.decode,
                metadata_only=source.metadata_only,
            ) as events:
                self._is_reached()
                if self._forbidden:
                    source.troubled("")
                async for event in events:
                    self._told = None
                    self._expired = False
                    source.troubled("")
                    delta = None
                    if event.type in ("ADDED", "MODIFIED"):
                        delta = source.store.put(self._thin(event.object))
                    elif event.type == "DELETED":
                        delta = source.store.remove(self._thin(event.object))
                    source.shown_version = event.resource_version or source.shown_version
                    if delta is not None:
                        source.publish((delta,))
                    current = self._step(current, watching.Happened(event.resource_version))
            ended: watching.Input = watching.Ended()
        except ClientError as error:
            if isinstance(error, ExpiredError) and not self._expired:
                current = self._step(current, watching.Steady())  # what failed before was something else: no back-off
            ended = self._failure(error)
        if self._clock.now() - opened >= STEADY_SECONDS:
            current = self._step(current, watching.Steady())
        return self._step(current, ended)

    def _read(self, item: msgspec.Raw) -> Any:
        try:
            return self._thin(self._decoder.decode(item))
        except msgspec.ValidationError as error:
            raise DecodeError(f"an object of the list: {error}") from error

    def _thin(self, thing: Any) -> Any:
        return self._source.thin(thing) if self._source.thin else thing

    def _is_reached(self) -> None:
        self._unreachable = self._away = False
        self._outage.over()

    def _failure(self, error: ClientError) -> watching.Input:
        self._unreachable = isinstance(error, Unreachable)
        was_away, self._away = self._away, is_away(error)
        self._expired = isinstance(error, ExpiredError)
        if isinstance(error, ExpiredError):
            return watching.Expired()
        if isinstance(error, NotFound) and error.is_missing_type:
            self._tell(logging.INFO, not_served(self._source.resource.group_resource))  # it may be served later
            return watching.Absent()
        self._tell(logging.WARNING, str(error))
        self._forbidden = isinstance(error, Forbidden)
        if self._forbidden or isinstance(error, DecodeError):  # these do not pass by themselves
            self._source.troubled(str(error))
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        return watching.Failed(retry_after or 0.0, away=self._away, back=was_away and not self._away)

    def _tell(self, level: int, what: str) -> None:
        if what != self._told:
            log.log(level, "watching %s: %s", self._source.resource.group_resource, what)
            self._told = what
