"""A connection that speaks another protocol than HTTP from here on: bytes in both directions, each as fast as the
slower side."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

MOST_UNREAD = 256 * 1024
"""Bytes that may wait to be read before the other side has to wait."""


class Wire(Protocol):
    """A connection, as far as a duplex needs it."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Waits while the other side is far behind; raises `ConnectionError` if it has left."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def finish(self) -> None:
        """Closes the connection when everything has been written."""


class Duplex:
    """`read` and `write` from one task each. The connection feeds it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._is_over = False
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """What has come; nothing at the end."""
        while not self._parts:
            if self._is_over:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = self._parts.popleft()
        self._size -= len(data)
        if self._size <= MOST_UNREAD // 2 and not self._is_over:
            self._wire.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Takes the bytes, and waits while the other side is far behind. Raises `ConnectionError` if it has left."""
        if self._is_over:
            raise ConnectionResetError("the other side has left")
        self._wire.write(data)
        await self._wire.drain()

    def close(self) -> None:
        self._wire.finish()

    # The connection's side

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size > MOST_UNREAD:
            self._wire.pause_reading()
        self._wake()

    def end(self) -> None:
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def relay(one: Duplex, other: Duplex) -> None:
    """Passes bytes on in both directions until one side ends; then both are closed."""

    async def pump(source: Duplex, target: Duplex) -> None:
        while data := await source.read():
            await target.write(data)

    tasks = [asyncio.ensure_future(pump(one, other)), asyncio.ensure_future(pump(other, one))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        one.close()
        other.close()
