"""What one server has for all of its clients together: connections, descriptors, memory for bodies that come in.

Nobody can use it up. Past a limit the server lets go of what is cheapest to lose: of idle connections those that never
asked anything, then those that have been idle longest; of unfinished bodies the largest. A client that asks and reads
is never cut off in favour of one that does not.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Generic, Protocol, TypeVar

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 2048
MOST_IDLE = 256
"""Connections that nothing is being answered on. Each holds some 50 KB with TLS; a client of ours keeps a few."""
MOST_BODY_BYTES = 48 * 2**20
"""Of all bodies that are not complete, beyond the first bytes of each."""
FREE_BYTES = 16 * 1024
"""Of each body, which are not counted: most bodies are smaller, and connections are limited."""
MOST_DESCRIPTORS = 65_536


class Client(Protocol):
    """A connection, as far as limits are concerned."""

    has_asked: bool

    @property
    def is_idle(self) -> bool:
        """Nothing is being answered."""
        ...

    @property
    def is_slow(self) -> bool:
        """The request that is being answered still comes in."""
        ...

    def abort(self) -> None: ...


C = TypeVar("C", bound=Client)


class Connections(Generic[C]):
    """The connections of one server, those that have been idle longest first."""

    def __init__(self, most: int = MOST_CONNECTIONS, most_idle: int = MOST_IDLE) -> None:
        self.open: dict[C, None] = {}
        self._most = most
        self._most_idle = most_idle
        self._emptied: asyncio.Event | None = None
        self._warned_at = float("-inf")

    def add(self, connection: C) -> None:
        self.open[connection] = None
        if len(self.open) > self._most_idle:
            self._make_room()

    def rest(self, connection: C) -> None:
        """It has been answered, and waits for its next request."""
        if self.open.pop(connection, ...) is None:
            self.open[connection] = None

    def discard(self, connection: C) -> None:
        self.open.pop(connection, None)
        if self._emptied is not None and not self.open:
            self._emptied.set()

    def _make_room(self) -> None:
        idle = [connection for connection in self.open if connection.is_idle]
        excess = max(len(idle) - self._most_idle, len(self.open) - self._most)
        if excess <= 0:
            return
        newest = next(reversed(self.open))
        mute = [connection for connection in idle if not connection.has_asked and connection is not newest]
        kept = [connection for connection in idle if connection.has_asked]
        slow = [connection for connection in self.open if connection.is_slow]
        victims = (mute + kept + (slow if len(self.open) > self._most else []) + [newest])[:excess]
        for connection in victims:
            self.discard(connection)
            connection.abort()
        if newest in victims:
            self._warn()

    def _warn(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at > 60:
            self._warned_at = now
            log.warning("%d connections are in use: new ones are refused until some of them end", len(self.open))

    async def emptied(self, seconds: float) -> None:
        """Returns when all have ended, or after so many seconds."""
        if not self.open:
            return
        self._emptied = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await self._emptied.wait()
        except TimeoutError:
            pass


class Holder(Protocol):
    """A body that comes in."""

    def give_up(self) -> None: ...


class Budget:
    """Bytes of unfinished bodies. Past the limit the largest of them is given up."""

    def __init__(self, most: int = MOST_BODY_BYTES) -> None:
        self.held = 0
        self._most = most
        self._holders: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int) -> None:
        """Counts so many more bytes; the holder, or a larger one, may be told to give up at once."""
        self._holders[holder] = self._holders.get(holder, 0) + size
        self.held += size
        while self.held > self._most:
            largest = max(self._holders, key=self._holders.__getitem__)
            self.release(largest)
            largest.give_up()

    def release(self, holder: Holder) -> None:
        self.held -= self._holders.pop(holder, 0)


def raise_descriptor_limit() -> int:
    """Lets this process open as many files as it may, within reason. Returns how many that are."""
    try:
        import resource
    except ImportError:
        return 0  # not on Windows
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MOST_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
        return wanted
    return soft
