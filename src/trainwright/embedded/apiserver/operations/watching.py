"""Watches: a list's future, as a stream of events.

In: the table's events as they are committed. Out: lines of JSON, made once for each form and written straight to every
watcher's sink. For a watcher that is behind lines wait in a queue, where all who ask for the same form share their
bytes; the initial state is encoded as it is read. Who reads nothing for a while, falls too far behind, or has the most
lines of its own when all such lines exceed their budget, is cut off; it will list again.

A watch is in one of three places, in this order: initial state, events kept in the window, live events. Events that
wait to be sent go out first, and there is no await between reading the window and joining the live watchers, so
nothing is missed or doubled.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import itertools
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from trainwright.clock import Clock, deadline, happens_within
from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.http import tables
from trainwright.embedded.apiserver.http.negotiation import PARTIAL, PARTIAL_LIST, TABLE, Form
from trainwright.embedded.apiserver.http.requests import Call, Query, Sink, StreamedAnswer
from trainwright.embedded.apiserver.operations import reading
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.selection import Selection, selection
from trainwright.embedded.apiserver.storage.table import ADDED, DELETED, MODIFIED, Event, Table
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

MAX_BUFFER = 8 * 2**20
"""Bytes that wait for one watcher."""
FAR_BEHIND = 64 * 1024
"""Bytes that its connection has taken and not sent: what comes then waits in the queue."""
STALLED_SECONDS = 60.0
"""For a watcher that is behind to take anything at all."""
SMALL_BACKLOG = 256 * 1024
BOOKMARK_SECONDS = 60.0
encode = msgspec.json.encode


class Encoder:
    """Turns objects into the lines of one form; equal forms share lines through the event's cache."""

    def __init__(self, served: Type, form: Form, include: str, clock: Clock) -> None:
        self.served = served
        self.clock = clock
        self.form = form
        self.include = include
        self.key = (served.api_version, served.plural, form.kind, form.version, include)
        self._columns_sent = False

    def line(self, type: str, stored: Stored) -> bytes:
        return b'{"type":"' + type.encode() + b'","object":' + self._object(stored) + b"}\n"

    def _object(self, stored: Stored) -> bytes:
        if not self.form.kind:
            return self.served.whole(stored.data)
        obj = self.served.whole_object(stored.data)
        if self.form.kind == TABLE:
            return encode(self._one_row(obj))
        return encode(reading.partial(obj, self.form.version))

    def _one_row(self, obj: Json) -> Json:
        value = tables.table(self.served, [obj], self.include, self.clock.wall(), self.form.version)
        if self._columns_sent:
            value["columnDefinitions"] = None
        self._columns_sent = True
        value["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return value

    def bookmark(self, version: int, *, initial_end: bool = False) -> bytes:
        meta: Json = {"resourceVersion": str(version)}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj: Json = {"kind": self.served.kind, "apiVersion": self.served.api_version, "metadata": meta}
        if self.form.kind == TABLE:
            value = tables.table(self.served, [], self.include, self.clock.wall(), self.form.version)
            value["metadata"] = {"resourceVersion": str(version)}
            partial = reading.partial(obj, self.form.version)
            value["rows"] = [{"cells": [None] * len(value["columnDefinitions"]), "object": partial}]
            obj = value
        elif self.form.kind:
            obj = reading.partial(obj, self.form.version)
        return b'{"type":"BOOKMARK","object":' + encode(obj) + b"}\n"


class LiveWatch:
    """One watcher. `deliver` is called with the events of its table, in bunches, on the event loop."""

    def __init__(self, api: Api, sink: Sink, encoder: Encoder, namespace: str, chosen: Selection) -> None:
        self.sink = sink
        self.encoder = encoder
        self.namespace = namespace
        self.chosen = chosen
        self.is_over = False
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when there is something to send, or nothing more will come."""
        self._clock = api.clock
        self._budget = api.watch_budget
        self._shares = chosen.everything and encoder.form.kind != TABLE
        self._first: Iterator[bytes] | None = None  # what comes before the queue
        self._queue: collections.deque[bytes] = collections.deque()
        self._queued = 0

    def deliver(self, events: list[Event]) -> None:
        if self.is_over:
            return
        lines = [line for event in events if (line := self.line_of(event)) is not None]
        if not lines:
            return
        if self.is_behind or self.sink.unread() > FAR_BEHIND:
            self._enqueue(lines)
        else:
            self.sink.write(lines[0] if len(lines) == 1 else b"".join(lines))

    @property
    def is_behind(self) -> bool:
        return bool(self._queue) or self._first is not None

    def begin_with(self, lines: Iterator[bytes]) -> None:
        """Sends these before anything else, as they are read."""
        self._first = lines
        self._wake()

    def send(self, line: bytes) -> None:
        """In its turn."""
        if self.is_behind:
            self._enqueue([line])
        else:
            self.sink.write(line)

    def _enqueue(self, lines: list[bytes]) -> None:
        size = sum(map(len, lines))
        self._queue.extend(lines)
        self._queued += size
        if self._queued > MAX_BUFFER:
            self.give_up()
            return
        self._wake()
        if not self._shares:
            self._budget.hold(self, size)

    async def flush(self) -> None:
        """Sends what waits, as fast as the watcher reads."""
        try:
            while not self.is_over and (piece := self._next_piece()):
                async with deadline(self._clock, STALLED_SECONDS):
                    await self.sink.send(piece)
        except TimeoutError:
            self.give_up()
        self._budget.release(self)

    def _next_piece(self) -> bytes:
        lines: list[bytes] = []
        size = 0
        while self._first is not None and size < FAR_BEHIND:
            line = next(self._first, None)
            if line is None:
                self._first = None
            else:
                lines.append(line)
                size += len(line)
        while self._first is None and self._queue and size < FAR_BEHIND:
            line = self._queue.popleft()
            self._queued -= len(line)
            lines.append(line)
            size += len(line)
        return lines[0] if len(lines) == 1 else b"".join(lines)

    def give_up(self) -> None:
        """The watcher does not read: it is cut off."""
        self.sink.abort()
        self.close()

    def line_of(self, event: Event) -> bytes | None:
        current, previous = event.current, event.previous
        if self.namespace and current.key.namespace != self.namespace:
            return None
        type = event.type
        shown = current
        if not self.chosen.everything:
            now = type != DELETED and self.chosen.matches(current)
            before = previous is not None and self.chosen.matches(previous)
            if not now and not before:
                return None
            if now:
                type = MODIFIED if before else ADDED
            elif type != DELETED:
                # It no longer matches: the watcher sees it go in its last matching state, at this version.
                assert previous is not None
                type, shown = DELETED, _as_of(previous, event.version)
        key = (type, self.encoder.key)
        if shown is not current or self.encoder.form.kind == TABLE:
            return self.encoder.line(type, shown)  # the first row of each watch carries the columns
        line = event.lines.get(key)
        if line is None:
            line = event.lines[key] = self.encoder.line(type, current)
        return line

    def close(self) -> None:
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        if not self.changed.done():
            self.changed.set_result(None)

    def forget(self) -> None:
        """Nobody reads any more."""
        self._queue.clear()
        self._first = None
        self._budget.release(self)


def _as_of(stored: Stored, version: int) -> Stored:
    obj = stored.decode()
    obj["metadata"]["resourceVersion"] = str(version)
    return msgspec.structs.replace(stored, version=version, data=encode(obj))


class Start(msgspec.Struct, frozen=True):
    """Where a watch begins and how long it may last."""

    version: int
    initial: bool  # send the present first
    announce_end: bool  # and a bookmark when that is done
    bookmarks: bool
    seconds: float


def _start(api: Api, query: Query) -> Start:
    _check_start(query)
    wanted = query.get("resourceVersion")
    version = reading.parse_version(wanted) if wanted else 0
    bookmarks = query.flag("allowWatchBookmarks")
    seconds = float(query.integer("timeoutSeconds") or random.uniform(1800, 3600))  # noqa: S311  spreads re-connections
    if not query.has("sendInitialEvents"):
        return Start(version, version == 0, False, bookmarks, seconds)
    initial = query.flag("sendInitialEvents")
    if not initial and not wanted:
        version = api.state.version
    return Start(version, initial, initial and bookmarks, bookmarks, seconds)


def _check_start(query: Query) -> None:
    match = query.get("resourceVersionMatch")
    send_initial = query.has("sendInitialEvents")
    faults: list[field.FieldError] = []
    at = "resourceVersionMatch"
    if send_initial and match != "NotOlderThan":
        faults.append(field.forbidden(at, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if not send_initial:
            text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            faults.append(field.forbidden(at, text))
        if match != "NotOlderThan":
            faults.append(field.not_supported(at, match, ["NotOlderThan"]))
        if query.get("continue"):
            faults.append(field.forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
    if faults:
        raise errors.invalid_options("ListOptions", faults)


def watch(api: Api, call: Call) -> StreamedAnswer:
    """One watch, until it times out, the client leaves, the type goes or the server stops."""
    form = reading.form_of(call)
    if form.kind == PARTIAL_LIST:
        form = Form(form.media_type, PARTIAL, form.version)
    chosen = selection(call.served, call.query)
    start = _start(api, call.query)
    encoder = Encoder(call.served, form, call.query.get("includeObject"), api.clock)
    return StreamedAnswer(functools.partial(_send, api, call.namespace, chosen, start, encoder))


async def _send(api: Api, namespace: str, chosen: Selection, start: Start, encoder: Encoder, sink: Sink) -> None:
    table = api.state.table(encoder.served.resource)
    live = LiveWatch(api, sink, encoder, namespace, chosen)
    table.tell_now()  # what is already in the window must not come a second time
    if not start.initial and start.version < table.floor:
        sink.write(_too_old(start.version, table.floor))
        return
    _send_backlog(api.state.version, table, live, start)
    table.watchers[live] = None
    try:
        await _serve(api, table, live, start)
    finally:
        table.watchers.pop(live, None)
        live.forget()


def _send_backlog(version: int, table: Table, live: LiveWatch, start: Start) -> None:
    """What the watcher must see before live events: a little at once, much as it is read."""
    encoder = live.encoder
    if start.initial:
        found = [s for s in table.select(live.namespace) if live.chosen.matches(s)]
        size = sum(len(stored.data) for stored in found)
        lines = (encoder.line(ADDED, stored) for stored in found)
        if start.announce_end:
            lines = itertools.chain(lines, (encoder.bookmark(version, initial_end=True),))  # type: ignore[assignment]
    else:
        missed = [event for event in table.events if event.version > start.version]
        size = sum(len(event.current.data) for event in missed)
        lines = (line for event in missed if (line := live.line_of(event)) is not None)
    if size <= SMALL_BACKLOG:
        if data := b"".join(lines):
            live.sink.write(data)
        return
    first = next(lines, None)  # it carries a table's columns, which no later line may take
    if first is not None:
        live.begin_with(itertools.chain((first,), lines))


def _too_old(wanted: int, oldest: int) -> bytes:
    event: dict[str, Any] = {"type": "ERROR", "object": errors.too_old(wanted, oldest).status}
    return encode(event) + b"\n"


async def _serve(api: Api, table: Table, live: LiveWatch, start: Start) -> None:
    clock = api.clock
    end = clock.now() + start.seconds
    while not live.is_over:
        if live.is_behind:
            await live.flush()
            continue
        left = end - clock.now()
        if left <= 0 or live.sink.is_closing():
            return
        if live.changed.done():
            live.changed = asyncio.get_running_loop().create_future()
        pause = min(left, BOOKMARK_SECONDS) if start.bookmarks else left
        changed = await happens_within(clock, pause, live.changed)
        if start.bookmarks and not changed and clock.now() < end:
            table.tell_now()  # a bookmark says that everything up to its version was sent
            live.send(live.encoder.bookmark(api.state.version))
