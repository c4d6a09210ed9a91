"""One HTTP/1.1 connection: a request goes out, a reply comes in, one after the other.

llhttp (httptools) parses; here is what surrounds it: who waits for which part of a reply, a limit on what waits to be
read, and what a connection that ends means. Nothing is retried here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from enum import IntEnum
from typing import cast

import httptools

from trainwright.http.duplex import Duplex
from trainwright.http.headers import Fields, Headers

READ_BUFFER = 4 * 2**20
"""Bytes of a stream that may wait to be read before the server has to wait. A line may be twice as long."""
LARGEST_HEAD = 256 * 1024
PIECE = 2**18
"""What is written at once: encrypting more would hold up the event loop."""
CLOSE_SECONDS = 0.05
"""What comes so soon after something else may be left to gather."""


class Broken(ConnectionError):
    """The connection ended, or what came was not HTTP, before the reply was complete."""


class _For(IntEnum):
    HEAD = 0
    DATA = 1
    END = 2


class Reply:
    """A reply as it comes in. `head()` first; then either `body()`, or `chunks()` or `lines()`."""

    def __init__(self, exchange: Exchange, buffer: int, gather: float = 0.0) -> None:
        self._buffer = buffer
        self._gather = gather
        self._read_at = float("-inf")  # when something of a stream was read last
        self.status = 0
        self.fields: Fields = []
        self.is_begun = False
        """A byte of it has arrived, so the server has seen the request."""
        self.is_complete = False
        self._exchange = exchange
        self._has_head = False
        self._error: Exception | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._waits_for = _For.HEAD
        self._waiter: asyncio.Future[None] | None = None

    @property
    def headers(self) -> Headers:
        return Headers(self.fields)

    async def head(self, seconds: float) -> None:
        while not self._has_head:
            await self._wait(_For.HEAD, seconds)

    async def body(self, seconds: float) -> bytes:
        """All of it, within so many seconds."""
        self._waits_for = _For.END
        self._exchange.resume()
        while not self.is_complete:
            await self._wait(_For.END, seconds)
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def some(self, most: int, idle: float) -> bytes:
        """All of it, or its first `most` bytes; then the connection cannot be used again."""
        parts, size = [], 0
        async for part in self.chunks(idle):
            parts.append(part)
            size += len(part)
            if size >= most:
                break
        return b"".join(parts)[:most]

    async def chunks(self, idle: float | None) -> AsyncIterator[bytes]:
        """Bytes as they arrive; `TimeoutError` when none do for `idle` seconds, if that is limited."""
        while True:
            while not self._parts:
                if self.is_complete:
                    return
                await self._wait(_For.DATA, idle)
            parts, self._parts, self._size = self._parts, [], 0
            if self._gather:
                self._let_gather()
            self._exchange.resume()
            for part in parts:
                yield part

    def _let_gather(self) -> None:
        """In a burst the connection rests for a moment after each look, and what came meanwhile is read at once."""
        now = asyncio.get_running_loop().time()
        if now - self._read_at < CLOSE_SECONDS and not self.is_complete:
            self._exchange.rest(self._gather)
        self._read_at = now

    async def lines(self, idle: float) -> AsyncIterator[bytes]:
        """Complete lines without their ends; empty ones are left out. The last one may have no end."""
        begun: list[bytes] = []  # of a line whose end has not come
        size = 0
        async for chunk in self.chunks(idle):
            first, *more = chunk.split(b"\n")
            begun.append(first)
            size += len(first)
            if size > 2 * self._buffer:
                raise Broken(f"a line is longer than {2 * self._buffer} bytes")
            if not more:
                continue
            for line in (b"".join(begun), *more[:-1]):
                if line := line.rstrip(b"\r"):
                    yield line
            begun, size = [more[-1]], len(more[-1])
        if line := b"".join(begun).rstrip(b"\r"):
            yield line

    async def _wait(self, what: _For, seconds: float | None) -> None:
        if self._error is not None:
            raise self._error
        loop = asyncio.get_running_loop()
        self._waits_for = what
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(seconds, _expire, waiter) if seconds is not None else None
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # The connection's side

    def take_head(self, status: int) -> None:
        self.status = status
        self._has_head = True
        if self._waits_for is _For.HEAD:
            self._wake()

    def take(self, data: bytes) -> bool:
        """False when enough is waiting to be read."""
        self._parts.append(data)
        self._size += len(data)
        if self._waits_for is _For.DATA:
            self._wake()
        return self._size < self._buffer or self._waits_for is _For.END

    def finish(self) -> None:
        self.is_complete = True
        self._wake()

    def end(self, error: Exception | None) -> None:
        """The connection is gone. Without a length, its end is the end of the reply."""
        if self._has_head and error is None and not ({"Content-Length", "Transfer-Encoding"} & {*self.headers}):
            self.finish()
        elif not self.is_complete:
            self._error = Broken(str(error) if error else "the server closed the connection")
            self._wake()


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class Exchange(asyncio.Protocol):
    """One connection. `request` may be called again when the reply to the last one is complete."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_used = False
        """It has carried a request before."""
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._reply: Reply | None = None
        self.duplex: Duplex | None = None
        """After a reply of 101: the connection, which speaks another protocol from there on."""
        self._fields: Fields = []
        self._head_size = 0
        self._is_paused = False
        self._rest: asyncio.TimerHandle | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def request(self, data: bytes, buffer: int | None = None, gather: float = 0.0) -> Reply:
        """Begins a request. `buffer` is how much of a stream may wait to be read, `gather` for how long what comes
        in a burst may.
        """
        self._reply = Reply(self, buffer or READ_BUFFER, gather)
        self.transport.write(data)
        return self._reply

    async def go_on(self, body: bytes) -> None:
        """Writes a large body, as fast as the server takes it. A connection that ends meanwhile ends the reply."""
        view = memoryview(body)
        for begin in range(0, len(body), PIECE):
            await self._may_write.wait()
            if not self.is_open:
                return
            self.transport.write(view[begin : begin + PIECE])
            await asyncio.sleep(0)

    def settle(self) -> bool:
        """The reply has been read. Whether the connection can carry another request."""
        complete = self._reply is not None and self._reply.is_complete
        self._reply = None
        self.is_used = True
        return complete and self.is_open and not self.transport.is_closing()

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        if self._is_paused and self._rest is None and self.is_open:
            self._is_paused = False
            self.transport.resume_reading()

    def rest(self, seconds: float) -> None:
        """Reads nothing for so long."""
        if self._rest is None and self.is_open:
            self.pause_reading()
            self._rest = asyncio.get_running_loop().call_later(seconds, self._end_rest)

    def _end_rest(self) -> None:
        self._rest = None
        self.resume()

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    # What a duplex needs

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    async def drain(self) -> None:
        await self._may_write.wait()
        if not self.is_open:
            raise ConnectionResetError("the server has left")

    def pause_reading(self) -> None:
        if not self._is_paused and self.is_open:
            self._is_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        self.resume()

    def finish(self) -> None:
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.duplex is not None:
            self.duplex.feed(data)
            return
        if self._reply is None or self._parser is None:
            self.close()  # nobody asked for anything
            return
        self._reply.is_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parser = None
            self.duplex = Duplex(self)
            self.duplex.feed(data[upgrade.args[0] :])
            self._reply.take_head(101)
            self._reply.finish()
        except httptools.HttpParserError as error:
            self._lost(Broken(f"what came is not HTTP: {error}"))
            self.close()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._may_write.set()
        if self.duplex is not None:
            self.duplex.end()
        self._lost(exc)

    def _lost(self, error: Exception | None) -> None:
        self._parser = None  # it holds this object
        if self._reply is not None:
            self._reply.end(error)

    # The parser's side

    def on_message_begin(self) -> None:
        self._fields, self._head_size = [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))
        self._head_size += len(name) + len(value)
        if self._head_size > LARGEST_HEAD:
            raise Broken(f"the headers are larger than {LARGEST_HEAD} bytes")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status >= 200 and self._reply is not None:  # others announce the reply proper
            self._reply.fields = self._fields
            self._reply.take_head(status)
        elif status == 101 and self._reply is not None:
            self._reply.fields = self._fields

    def on_body(self, data: bytes) -> None:
        if self._reply is not None and not self._reply.take(data) and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if self._parser.get_status_code() < 200:
            return
        if not self._parser.should_keep_alive():
            self.is_open = False
        if self._reply is not None:
            self._reply.finish()
