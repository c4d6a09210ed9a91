"""SPDY/3.1 as Kubernetes' streams use it, the server's side: many streams over one duplex, without flow control.

In: a duplex, or a WebSocket that carries the same bytes. Out: a `Stream` for each that the client opens, with its
headers. The clients (moby/spdystream) ignore windows, priorities and settings, and so does this.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from trainwright.http.spdydictionary import DICTIONARY

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS = 1, 2, 3, 6, 7, 8
FIN = 0x01
PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5
LARGEST_FRAME = 2**20
LARGEST_HEADERS = 64 * 1024
MOST_STREAMS = 512
MOST_UNREAD = 256 * 1024
"""Bytes of one stream that may wait to be read before the whole connection waits."""
PIECE = 32 * 1024


class Carrier(Protocol):
    """What the bytes go over."""

    async def read(self) -> bytes:
        """What has come; nothing at the end."""
        ...

    async def write(self, data: bytes) -> None: ...


class Broken(Exception):
    """The client does not speak SPDY/3.1; the message says where it went wrong."""


Opened = Callable[["Stream"], Awaitable[bool]]
"""Called for each new stream, its headers known. False refuses it."""


class Stream:
    """One stream: `read` and `write` from one task each."""

    def __init__(self, session: Session, number: int, headers: dict[str, str]) -> None:
        self.number = number
        self.headers = headers
        self._session = session
        self._parts: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._is_closed = False
        self.has_left = False
        """The client has reset the stream, or ended the connection."""
        self._changed = asyncio.Event()

    async def read(self) -> bytes:
        """What has come; nothing at the end."""
        while not self._parts and not self._is_over:
            self._changed.clear()
            await self._changed.wait()
        data = b"".join(self._parts)
        self._parts, self._size = [], 0
        self._changed.set()
        return data

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            if self._is_closed:
                raise ConnectionResetError("the stream has been reset")
            await self._session.send_data(self.number, data[begin : begin + PIECE])

    async def close(self) -> None:
        """Nothing more is written."""
        if not self._is_closed:
            self._is_closed = True
            await self._session.send_data(self.number, b"", FIN)

    async def reset(self) -> None:
        self._is_closed = True
        self.forget()
        await self._session.send_reset(self.number, CANCEL)

    def forget(self) -> None:
        """Both sides are through with it."""
        self.end()
        self._session.forget(self)

    # The session's side

    async def feed(self, data: bytes) -> None:
        while self._size > MOST_UNREAD and not self._is_over:
            self._changed.clear()
            await self._changed.wait()
        if data and not self._is_over:
            self._parts.append(data)
            self._size += len(data)
            self._changed.set()

    def end(self, *, was_reset: bool = False) -> None:
        self._is_over = True
        self._is_closed = self._is_closed or was_reset
        self.has_left = self.has_left or was_reset
        self._changed.set()


class Session:
    """One connection: `run` it until the client leaves."""

    def __init__(self, carrier: Carrier, opened: Opened) -> None:
        self._carrier = carrier
        self._opened = opened
        self._buffer = bytearray()
        self._streams: dict[int, Stream] = {}
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    async def run(self) -> None:
        """Raises `Broken`, and `ConnectionError` when the connection ends in the middle of a write."""
        try:
            while (head := await self._take(8)) is not None:
                length = int.from_bytes(head[5:8], "big")
                if length > LARGEST_FRAME:
                    raise Broken(f"a frame of {length} bytes")
                body = await self._take(length)
                if body is None:
                    return
                if head[0] & 0x80:
                    await self._control(struct.unpack(">HH", head[:4]), head[4], body)
                else:
                    await self._data(int.from_bytes(head[:4], "big"), head[4], body)
        finally:
            for stream in self._streams.values():
                stream.end(was_reset=True)

    async def _control(self, kind: tuple[int, int], flags: int, body: bytes) -> None:
        version, number = kind[0] & 0x7FFF, kind[1]
        if version != 3:
            raise Broken(f"version {version}")
        if number == SYN_STREAM:
            await self._open(flags, body)
        elif number == RST_STREAM and len(body) >= 4:
            stream = self._streams.pop(_number(body), None)
            if stream is not None:
                stream.end(was_reset=True)
        elif number == PING:
            await self._send_control(PING, 0, body)
        elif number == HEADERS and len(body) >= 4:
            self._headers(body[4:])  # the compression goes on, whatever they say

    async def _open(self, flags: int, body: bytes) -> None:
        if len(body) < 10:
            raise Broken("a short SYN_STREAM")
        number = _number(body)
        stream = Stream(self, number, self._headers(body[10:]))
        if number % 2 == 0 or number in self._streams:
            await self.send_reset(number, PROTOCOL_ERROR)
            return
        if len(self._streams) >= MOST_STREAMS or not await self._opened(stream):
            await self.send_reset(number, REFUSED_STREAM)
            return
        self._streams[number] = stream
        if flags & FIN:
            stream.end()
        block = self._deflate.compress((0).to_bytes(4, "big")) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        await self._send_control(SYN_REPLY, 0, number.to_bytes(4, "big") + block)

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(block, LARGEST_HEADERS)
        except zlib.error as error:
            raise Broken(f"headers that cannot be read: {error}") from None
        if self._inflate.unconsumed_tail:
            raise Broken("headers that are too large")
        found: dict[str, str] = {}
        try:
            (count,), at = struct.unpack_from(">I", text), 4
            for _ in range(count):
                pair = []
                for _ in range(2):
                    (size,) = struct.unpack_from(">I", text, at)
                    pair.append(text[at + 4 : at + 4 + size].decode(errors="replace"))
                    at += 4 + size
                found[pair[0].lower()] = pair[1].partition("\0")[0]
        except struct.error:
            raise Broken("headers that end early") from None
        return found

    async def _data(self, number: int, flags: int, body: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return  # it has been reset, and the client does not know yet
        await stream.feed(body)
        if flags & FIN:
            stream.end()

    async def send_data(self, number: int, data: bytes, flags: int = 0) -> None:
        await self._carrier.write(struct.pack(">II", number, flags << 24 | len(data)) + data)

    async def send_reset(self, number: int, why: int) -> None:
        await self._send_control(RST_STREAM, 0, struct.pack(">II", number, why))

    async def _send_control(self, kind: int, flags: int, body: bytes) -> None:
        await self._carrier.write(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body)

    def forget(self, stream: Stream) -> None:
        self._streams.pop(stream.number, None)

    async def _take(self, count: int) -> bytes | None:
        while len(self._buffer) < count:
            data = await self._carrier.read()
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def _number(body: bytes) -> int:
    return int.from_bytes(body[:4], "big") & 0x7FFFFFFF
