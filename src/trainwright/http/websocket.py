"""WebSocket (RFC 6455) over a duplex, either side of it: handshake, frames, pings, the end. No extensions.

In: bytes of a peer that may send anything. Out: whole messages, of a limited size. What breaks the protocol ends the
connection with the code that the standard has for it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Mapping, Sequence

from trainwright.http.duplex import Duplex

LARGEST_MESSAGE = 4 * 2**20
LINGER_SECONDS = 5.0
"""For the other side to answer the end, so that it has read everything that came before."""

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, PROTOCOL_ERROR, TOO_BIG, FAILED = 1000, 1002, 1009, 1011
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class BadHandshake(Exception):
    """A request or a reply that opens no WebSocket; the message says why."""


class _Ended(Exception):
    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


def is_asked_for(headers: Mapping[str, str]) -> bool:
    return headers.get("Upgrade", "").lower() == "websocket"


def accept(headers: Mapping[str, str], protocols: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """The server's answer: the first of the client's protocols that is among ours, and the fields of the reply.

    Raises `BadHandshake` when there is none, or when the request is not one for a WebSocket.
    """
    key = headers.get("Sec-WebSocket-Key", "")
    if headers.get("Sec-WebSocket-Version") != "13" or not key:
        raise BadHandshake("a WebSocket needs Sec-WebSocket-Version 13 and a Sec-WebSocket-Key")
    wanted = [name.strip() for name in headers.get("Sec-WebSocket-Protocol", "").split(",") if name.strip()]
    chosen = next((name for name in wanted if name in protocols), "")
    if wanted and not chosen:
        raise BadHandshake(f"none of the protocols {wanted} is spoken here, but {list(protocols)}")
    fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", _accept_key(key))]
    if chosen:
        fields.append(("Sec-WebSocket-Protocol", chosen))
    return chosen, fields


def request_fields(protocols: Sequence[str]) -> dict[str, str]:
    """The fields of a client's request."""
    return {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": ", ".join(protocols),
    }


def check_reply(sent: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """The protocol that the server chose. Raises `BadHandshake`."""
    if headers.get("Sec-WebSocket-Accept") != _accept_key(sent["Sec-WebSocket-Key"]):
        raise BadHandshake("the server's answer does not fit the request")
    return headers.get("Sec-WebSocket-Protocol", "")


def _accept_key(key: str) -> str:
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


class WebSocket:
    """Messages over a duplex. `receive` from one task; `send` from any."""

    def __init__(self, duplex: Duplex, *, is_client: bool) -> None:
        self._duplex = duplex
        self._is_client = is_client
        self._buffer = bytearray()
        self._has_sent_close = False
        self._sending = asyncio.Lock()

    async def send(self, data: bytes, kind: int = BINARY) -> None:
        """One message; waits while the other side is far behind. Raises `ConnectionError` if it has left."""
        # One at a time: a waiting sender holds up the others, and nothing piles up behind it.
        async with self._sending:
            await self._duplex.write(self._frame(kind, data))

    async def receive(self) -> bytes | None:
        """The next message; None when the other side has ended the connection, or had to be cut off."""
        try:
            return await self._message()
        except _Ended as end:
            if end.code is not None:
                await self._send_close(end.code)
            return None

    async def close(self, code: int = NORMAL) -> None:
        """Ends the connection. What the other side still sends is thrown away until it has seen the end."""
        try:
            await self._send_close(code)
            async with asyncio.timeout(LINGER_SECONDS):
                while True:
                    await self._message()
        except (_Ended, TimeoutError, ConnectionError):
            pass
        self._duplex.close()

    async def _send_close(self, code: int) -> None:
        if not self._has_sent_close:
            self._has_sent_close = True
            try:
                await self.send(code.to_bytes(2, "big"), CLOSE)
            except ConnectionError:
                pass

    async def _message(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            is_final, kind, data = await self._next_frame()
            if kind == CLOSE:
                raise _Ended(int.from_bytes(data[:2], "big") if len(data) >= 2 else NORMAL)
            if kind == PING:
                if not self._has_sent_close:
                    await self.send(data, PONG)
                continue
            if kind == PONG:
                continue
            if (kind == CONTINUATION) != bool(parts) or kind not in (CONTINUATION, TEXT, BINARY):
                raise _Ended(PROTOCOL_ERROR)
            size += len(data)
            if size > LARGEST_MESSAGE:
                raise _Ended(TOO_BIG)
            if is_final and not parts:
                return data
            parts.append(data)
            if is_final:
                return b"".join(parts)

    async def _next_frame(self) -> tuple[bool, int, bytes]:
        first, second = await self._take(2)
        is_final, kind, is_masked, length = bool(first & 0x80), first & 0x0F, bool(second & 0x80), second & 0x7F
        if first & 0x70 or is_masked == self._is_client:
            raise _Ended(PROTOCOL_ERROR)
        if kind >= CLOSE and (length > 125 or not is_final):
            raise _Ended(PROTOCOL_ERROR)
        if length == 126:
            length = int.from_bytes(await self._take(2), "big")
        elif length == 127:
            length = int.from_bytes(await self._take(8), "big")
        if length > LARGEST_MESSAGE:
            raise _Ended(TOO_BIG)
        mask = await self._take(4) if is_masked else b""
        data = await self._take(length)
        return is_final, kind, _masked(data, mask) if mask else data

    async def _take(self, count: int) -> bytes:
        buffer = self._buffer
        while len(buffer) < count:
            data = await self._duplex.read()
            if not data:
                raise _Ended(None)
            buffer += data
        taken = bytes(buffer[:count])
        del buffer[:count]
        return taken

    def _frame(self, kind: int, data: bytes) -> bytes:
        size = len(data)
        masked = 0x80 if self._is_client else 0
        if size < 126:
            head = bytes((0x80 | kind, masked | size))
        elif size < 65536:
            head = bytes((0x80 | kind, masked | 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((0x80 | kind, masked | 127)) + size.to_bytes(8, "big")
        if not self._is_client:
            return head + data
        mask = os.urandom(4)
        return head + mask + _masked(data, mask)


def _masked(data: bytes, mask: bytes) -> bytes:
    """The data with the mask over it, all at once: as two long integers."""
    size = len(data)
    over = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(over, "little")).to_bytes(size, "little")
