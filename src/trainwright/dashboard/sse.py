"""Server-sent events: JSON under a name, and comments that keep the connection alive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from trainwright.http.response import ConnectionSink, HeaderFields, StreamedResponse

ALIVE_SECONDS = 15.0
MOST_UNREAD = 4 * 2**20
"""Bytes that wait for a browser that does not read; it is cut off, and connects again."""

Events = AsyncIterator[tuple[str, Any] | None]
"""Names with their data; None when there is nothing to say and the time is good to see whether anybody listens."""


def encode(name: str, data: Any) -> bytes:
    """One event. JSON has no raw newlines, so the data is one line."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))


def stream(events: Callable[[], Events], fields: HeaderFields) -> StreamedResponse:
    """The answer that sends events until they end or the browser leaves."""

    async def send(sink: ConnectionSink) -> None:
        loop = asyncio.get_running_loop()
        sink.write(b"retry: 1000\n\n")
        last = loop.time()
        async for event in events():
            if event is not None:
                await sink.send(encode(*event))
                last = loop.time()
            elif loop.time() - last > ALIVE_SECONDS:
                await sink.send(b": alive\n\n")
                last = loop.time()
            if sink.unread() > MOST_UNREAD:
                sink.abort()
                return

    return StreamedResponse(send, "text/event-stream", fields)
