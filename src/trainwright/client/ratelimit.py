"""A limit on requests per second, in front of a transport: `clientConnection.qps` and `.burst`.

A token bucket: `burst` requests at once, then `qps` each second, in the order they were asked for. Watches count once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport


class RateLimited:
    def __init__(
        self,
        transport: Transport,
        *,
        qps: float,
        burst: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._interval = 1.0 / qps
        self._burst = max(1, burst)
        self._now = now
        self._sleep = sleep
        self._free_at = 0.0  # when the bucket will be full again

    async def send(self, request: Request, *, deadline: float) -> Answer:
        await self._take()
        return await self._transport.send(request, deadline=deadline)

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        await self._take()
        async with self._transport.stream(request, deadline=deadline, idle=idle) as stream:
            yield stream

    async def open(self) -> None:
        await self._transport.open()

    async def close(self) -> None:
        await self._transport.close()

    async def _take(self) -> None:
        now = self._now()
        self._free_at = max(self._free_at, now) + self._interval
        wait = self._free_at - now - self._burst * self._interval
        if wait > 0:
            await self._sleep(wait)
