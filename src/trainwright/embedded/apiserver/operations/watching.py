"""Watches: a list's future, as a stream of events.

In: the table's events as they are committed. Out: lines of JSON, made once for each form and written straight to every
watcher's sink. A watcher that does not read is cut off when its buffer grows too large; it will list again.

A watch is in one of three places, in this order: initial state, events kept in the window, live events. Events that
wait to be sent go out first, and there is no await between reading the window and joining the live watchers, so
nothing is missed or doubled.
"""

from __future__ import annotations

import asyncio
import functools
import random
from typing import Any

import msgspec

from trainwright.clock import Clock, happens_within
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

    def __init__(self, sink: Sink, encoder: Encoder, namespace: str, chosen: Selection) -> None:
        self.sink = sink
        self.encoder = encoder
        self.namespace = namespace
        self.chosen = chosen
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def deliver(self, events: list[Event]) -> None:
        if self.done.done():
            return
        lines = [line for event in events if (line := self.line_of(event)) is not None]
        if not lines:
            return
        self.sink.write(lines[0] if len(lines) == 1 else b"".join(lines))
        if self.sink.unread() > MAX_BUFFER:
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
        if not self.done.done():
            self.done.set_result(None)


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
    live = LiveWatch(sink, encoder, namespace, chosen)
    table.tell_now()  # what is already in the window must not come a second time
    lines = _backlog(api.state.version, table, live, start)
    if lines is None:
        sink.write(_too_old(start.version, table.floor))
        return
    if lines:
        sink.write(b"".join(lines))
    table.watchers[live] = None
    try:
        await _serve(api, table, live, start)
    finally:
        table.watchers.pop(live, None)


def _backlog(version: int, table: Table, live: LiveWatch, start: Start) -> list[bytes] | None:
    """What the watcher must see before live events; None if its version is forgotten."""
    encoder = live.encoder
    if start.initial:
        found = [s for s in table.select(live.namespace) if live.chosen.matches(s)]
        lines = [encoder.line(ADDED, stored) for stored in found]
        if start.announce_end:
            lines.append(encoder.bookmark(version, initial_end=True))
        return lines
    if start.version < table.floor:
        return None
    missed = (live.line_of(event) for event in table.events if event.version > start.version)
    return [line for line in missed if line is not None]


def _too_old(wanted: int, oldest: int) -> bytes:
    event: dict[str, Any] = {"type": "ERROR", "object": errors.too_old(wanted, oldest).status}
    return encode(event) + b"\n"


async def _serve(api: Api, table: Table, live: LiveWatch, start: Start) -> None:
    clock = api.clock
    deadline = clock.now() + start.seconds
    while not live.done.done():
        left = deadline - clock.now()
        if left <= 0 or live.sink.is_closing():
            return
        pause = min(left, BOOKMARK_SECONDS) if start.bookmarks else left
        ended = await happens_within(clock, pause, live.done)
        if start.bookmarks and not ended and clock.now() < deadline:
            table.tell_now()  # a bookmark says that everything up to its version was sent
            live.sink.write(live.encoder.bookmark(api.state.version))
