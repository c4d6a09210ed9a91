"""A limit on requests per second for each kind, in front of a transport: `clientConnection.qps` and `.burst`.

A token bucket for each resource: `burst` requests at once, then `qps` each second, in the order they were asked for.
Watches count once.
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
        self._free_at: dict[str, float] = {}  # when each resource's bucket will be full again

    async def send(self, request: Request, *, deadline: float) -> Answer:
        await self._take(resource_of(request.path))
        return await self._transport.send(request, deadline=deadline)

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        await self._take(resource_of(request.path))
        async with self._transport.stream(request, deadline=deadline, idle=idle) as stream:
            yield stream

    async def open(self) -> None:
        await self._transport.open()

    async def close(self) -> None:
        await self._transport.close()

    async def _take(self, resource: str) -> None:
        now = self._now()
        free_at = self._free_at[resource] = max(self._free_at.get(resource, 0.0), now) + self._interval
        wait = free_at - now - self._burst * self._interval
        if wait > 0:
            await self._sleep(wait)


def resource_of(path: str) -> str:
    """The group and resource that a path asks for: `apps/deployments`; of any other path its first word."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return parts[0]
    group, rest = ("", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:2]), parts[3:])
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return f"{group}/{rest[0]}" if rest else group
