"""Watches: a list's future, as a stream of events.

In: the table's events as they are committed. Out: lines of JSON, chunk-framed once for each form and written straight
to every watcher's transport. A watcher that does not read is cut off when its buffer grows too large; it will list
again.

A watch is in one of three places, in this order: initial state, events kept in the window, live events. Events that
wait to be sent go out first, and there is no await between reading the window and joining the live watchers, so
nothing is missed or doubled.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
from aiohttp import web

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.http import tables
from trainwright.embedded.apiserver.http.negotiation import PARTIAL, PARTIAL_LIST, TABLE, Form
from trainwright.embedded.apiserver.http.requests import Call
from trainwright.embedded.apiserver.operations import reading
from trainwright.embedded.apiserver.storage.selection import Selection, selection
from trainwright.embedded.apiserver.storage.state import (
    ADDED,
    DELETED,
    MODIFIED,
    Event,
    Stored,
    Table,
)
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

MAX_BUFFER = 8 * 2**20
BOOKMARK_SECONDS = 60.0
encode = msgspec.json.encode


class Encoder:
    """Turns objects into the frames of one form; equal forms share frames through the event's cache."""

    def __init__(self, served: Type, form: Form, include: str) -> None:
        self.served = served
        self.form = form
        self.include = include
        self.key = (served.api_version, served.plural, form.kind, form.version, include)
        self._columns_sent = False

    def frame(self, type: str, stored: Stored) -> bytes:
        return chunk(b'{"type":"' + type.encode() + b'","object":' + self._object(stored) + b"}\n")

    def _object(self, stored: Stored) -> bytes:
        if not self.form.kind:
            return self.served.whole(stored.data)
        obj = self.served.whole_object(stored.data)
        if self.form.kind == TABLE:
            return encode(self._one_row(obj))
        return encode(reading.partial(obj, self.form.version))

    def _one_row(self, obj: Json) -> Json:
        value = tables.table(self.served, [obj], self.include, self.form.version)
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
            value = tables.table(self.served, [], self.include, self.form.version)
            value["metadata"] = {"resourceVersion": str(version)}
            partial = reading.partial(obj, self.form.version)
            value["rows"] = [{"cells": [None] * len(value["columnDefinitions"]), "object": partial}]
            obj = value
        elif self.form.kind:
            obj = reading.partial(obj, self.form.version)
        return chunk(b'{"type":"BOOKMARK","object":' + encode(obj) + b"}\n")


def chunk(line: bytes) -> bytes:
    """HTTP/1.1 chunk framing, done once for all watchers."""
    return b"%x\r\n" % len(line) + line + b"\r\n"


class LiveWatch:
    """One watcher. `deliver` is called with the events of its table, in bunches, on the event loop."""

    def __init__(self, transport: asyncio.WriteTransport, encoder: Encoder, namespace: str, chosen: Selection) -> None:
        self.transport = transport
        self.encoder = encoder
        self.namespace = namespace
        self.chosen = chosen
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def deliver(self, events: list[Event]) -> None:
        if self.done.done():
            return
        frames = [frame for event in events if (frame := self.frame_of(event)) is not None]
        if not frames:
            return
        self.transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
        if self.transport.get_write_buffer_size() > MAX_BUFFER:
            self.transport.abort()
            self.close()

    def frame_of(self, event: Event) -> bytes | None:
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
            return self.encoder.frame(type, shown)  # the first row of each watch carries the columns
        frame = event.frames.get(key)
        if frame is None:
            frame = event.frames[key] = self.encoder.frame(type, current)
        return frame

    def close(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


def _as_of(stored: Stored, version: int) -> Stored:
    obj = stored.decode()
    obj["metadata"]["resourceVersion"] = str(version)
    return msgspec.structs.replace(stored, version=version, data=encode(obj))


class Start(msgspec.Struct):
    """Where a watch begins."""

    version: int = 0
    initial: bool = False  # send the present first
    announce_end: bool = False  # and a bookmark when that is done
    bookmarks: bool = False
    seconds: float = 0.0


def _start(api: Api, call: Call) -> Start:
    query = call.query
    wanted = query.get("resourceVersion")
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
    version = reading.parse_version(wanted) if wanted else 0
    seconds = query.integer("timeoutSeconds")
    start = Start(version=version, bookmarks=query.flag("allowWatchBookmarks"))
    start.seconds = float(seconds) if seconds else random.uniform(1800, 3600)  # noqa: S311  spreads re-connections
    if send_initial:
        start.initial = query.flag("sendInitialEvents")
        start.announce_end = start.initial and start.bookmarks
        if not start.initial and not wanted:
            start.version = api.state.version
    else:
        start.initial = version == 0
    return start


async def watch(api: Api, call: Call, request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
    """Serves one watch until it times out, the client leaves, the type goes or the server stops."""
    form = reading.form_of(call)
    if form.kind == PARTIAL_LIST:
        form = Form(form.media_type, PARTIAL, form.version)
    chosen = selection(call.served, call.query)
    start = _start(api, call)
    response = web.StreamResponse(status=200, headers={"Content-Type": "application/json", **headers})
    response.enable_chunked_encoding()
    await response.prepare(request)
    transport = request.transport
    if transport is None:
        return response
    table = api.state.table(call.served.resource)
    encoder = Encoder(call.served, form, call.query.get("includeObject"))
    live = LiveWatch(transport, encoder, call.namespace, chosen)
    table.tell_now()  # what is already in the window must not come a second time
    frames = _backlog(api, call, table, live, start)
    if frames is None:
        transport.write(_too_old(start.version, table.floor))
        await response.write_eof()
        return response
    if frames:
        transport.write(b"".join(frames))
    table.watchers[live] = None
    try:
        await _serve(api, table, live, start)
    finally:
        table.watchers.pop(live, None)
    if not transport.is_closing():
        await response.write_eof()
    return response


def _backlog(api: Api, call: Call, table: Table, live: LiveWatch, start: Start) -> list[bytes] | None:
    """What the watcher must see before live events; None if its version is forgotten."""
    encoder = live.encoder
    if start.initial:
        found = [s for s in table.select(call.namespace) if live.chosen.matches(s)]
        frames = [encoder.frame(ADDED, stored) for stored in found]
        if start.announce_end:
            frames.append(encoder.bookmark(api.state.version, initial_end=True))
        return frames
    if start.version < table.floor:
        return None
    found_frames = (live.frame_of(event) for event in table.events if event.version > start.version)
    return [frame for frame in found_frames if frame is not None]


def _too_old(wanted: int, oldest: int) -> bytes:
    event: dict[str, Any] = {"type": "ERROR", "object": errors.too_old(wanted, oldest).status}
    return chunk(encode(event) + b"\n")


async def _serve(api: Api, table: Table, live: LiveWatch, start: Start) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + start.seconds
    while not live.done.done():
        left = deadline - loop.time()
        if left <= 0 or live.transport.is_closing():
            return
        pause = min(left, BOOKMARK_SECONDS) if start.bookmarks else left
        await asyncio.wait([live.done], timeout=pause)
        if start.bookmarks and not live.done.done() and deadline - loop.time() > 0:
            table.tell_now()  # a bookmark says that everything up to its version was sent
            live.transport.write(live.encoder.bookmark(api.state.version))
