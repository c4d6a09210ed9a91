"""What an operator sees of the cluster: the truth, late, with gaps, or as it was.

A transport around another one. Writes and reads of single objects pass unchanged, as they reach the store; lists and
watches come from a cache that can lag behind, as an API server's can: by kind, for a while, or at an old version.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from trainwright.client.errors import UnknownOutcome
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport
from trainwright.clock import Clock
from trainwright.testing.clientaudit import reference
from trainwright.testing.faults import status_body


class View:
    """How one operator's view differs from the truth; times are of the clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lag = 0.0
        self.delays: dict[str, float] = {}
        self.hidden: dict[str, float] = {}  # kinds of which nothing is seen until then, and then only by a new list
        self.stale_until = 0.0
        self.stale_version = 0
        self._streams: set[_Seen] = set()

    def delay_of(self, plural: str) -> float:
        return self.lag + self.delays.get(plural, 0.0)

    def is_stale(self) -> bool:
        return self.clock.now() < self.stale_until

    def hide(self, plural: str, seconds: float) -> None:
        self.hidden[plural] = self.clock.now() + seconds
        for stream in list(self._streams):
            if stream.plural == plural:
                stream.wake()

    def break_streams(self, *, expired: bool) -> None:
        for stream in list(self._streams):
            stream.end(expired=expired)

    def opened(self, stream: _Seen) -> None:
        self._streams.add(stream)

    def closed(self, stream: _Seen) -> None:
        self._streams.discard(stream)


class Lens:
    """A `Transport`."""

    def __init__(self, inner: Transport, view: View) -> None:
        self._inner = inner
        self._view = view

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def send(self, request: Request, *, deadline: float) -> Answer:
        target = reference(request.path)
        if request.method == "GET" and "name" not in target:
            hidden = self._view.hidden.get(target.get("resource", ""), 0.0) - self._view.clock.now()
            if hidden > 0:
                await self._view.clock.sleep(hidden)
            if self._view.is_stale():
                at = (("resourceVersion", str(self._view.stale_version)), ("resourceVersionMatch", "Exact"))
                query = tuple(pair for pair in request.query if pair[0] not in ("resourceVersion", "limit"))
                request = msgspec.structs.replace(request, query=(*query, *at))
        return await self._inner.send(request, deadline=deadline)

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        async with self._inner.stream(request, deadline=deadline, idle=idle) as stream:
            if stream.status != 200 or not any(name == "watch" for name, _ in request.query):
                yield stream
                return
            seen = _Seen(stream, self._view, reference(request.path).get("resource", ""))
            self._view.opened(seen)
            try:
                yield seen
            finally:
                self._view.closed(seen)
                seen.close()


class _Seen:
    """A watch, through the lens: its lines come when they are due."""

    def __init__(self, inner: Stream, view: View, plural: str) -> None:
        self._inner = inner
        self._view = view
        self.plural = plural
        self.status = inner.status
        self.headers = inner.headers
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._ended: str | None = None
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def end(self, *, expired: bool) -> None:
        self._ended = "expired" if expired else "broken"
        self._changed.set()

    def wake(self) -> None:
        self._changed.set()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        async for line in self.lines():
            yield line + b"\n"

    async def _read(self) -> None:
        try:
            async for line in self._inner.lines():
                self._waiting.append((self._view.clock.now(), line))
                self._changed.set()
            self._ended = self._ended or "clean"
        except UnknownOutcome:
            self._ended = self._ended or "broken"
        self._changed.set()

    async def lines(self) -> AsyncIterator[bytes]:
        self._reading = asyncio.create_task(self._read())
        clock = self._view.clock
        while True:
            self._changed.clear()
            if self._ended == "expired":
                yield _gone()
                return
            if self._ended == "broken":
                raise UnknownOutcome("the connection broke (injected)")
            hidden = self._view.hidden.get(self.plural, 0.0) - clock.now()
            if hidden > 0:
                await clock.sleep(hidden)
                yield _gone()
                return
            if not self._waiting:
                if self._ended is not None:
                    return
                await self._changed.wait()
                continue
            arrived, line = self._waiting[0]
            due = max(arrived + self._view.delay_of(self.plural), self._view.stale_until)
            if due > clock.now():
                await self._sleep(due - clock.now())
                continue
            self._waiting.popleft()
            yield line

    async def _sleep(self, seconds: float) -> None:
        """Until then, or until something breaks the stream."""
        clock = self._view.clock
        end = clock.now() + seconds
        timer = clock.call_later(seconds, self._changed.set)
        try:
            while clock.now() < end and self._ended not in ("expired", "broken"):
                self._changed.clear()
                await self._changed.wait()
        finally:
            timer.cancel()


def _gone() -> bytes:
    return msgspec.json.encode(
        {"type": "ERROR", "object": msgspec.Raw(status_body(410, "too old resource version: 1 (2)"))}
    )
