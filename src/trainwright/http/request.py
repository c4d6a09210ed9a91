"""A request as a server sees it: its head is there, its body comes when somebody reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import unquote

from trainwright.http.headers import Headers
from trainwright.http.limits import FREE_BYTES, Budget

MOST_UNREAD = 256 * 1024
"""Bytes of a body that are taken in before anybody has asked for them."""


class TooLarge(Exception):
    """The body is larger than its reader allows."""


class BrokenBody(Exception):
    """The body ended, or was not HTTP any more, before it was complete."""


class Busy(Exception):
    """The server has no memory for this body: too many others come in at the same time."""


class Body:
    """What follows the head. The connection puts parts in; `read` takes all of them, once.

    `length` is what the head announces, 0 where it does not. `may_continue` is called when the body is wanted.
    """

    __slots__ = (
        "_budget",
        "_is_given_up",
        "_is_ignored",
        "_is_wanted",
        "_length",
        "_may_continue",
        "_most",
        "_parts",
        "_size",
        "_waiter",
        "error",
        "is_complete",
    )

    def __init__(self, length: int, may_continue: Callable[[], None], budget: Budget | None = None) -> None:
        self.is_complete = False
        self.error: str | None = None
        self._length = length
        self._may_continue = may_continue
        self._parts: list[bytes] = []
        self._size = 0
        self._most = MOST_UNREAD
        self._is_wanted = False
        self._is_ignored = False
        self._is_given_up = False
        self._budget = budget
        self._waiter: asyncio.Future[None] | None = None

    async def read(self, most: int, seconds: float) -> bytes:
        """All of it. Raises `TooLarge` as soon as that is known, `BrokenBody`, `Busy`, and `TimeoutError`."""
        self._is_wanted, self._most = True, most
        if not self.is_complete and self.error is None and max(self._size, self._length) <= most:
            self._may_continue()
            loop = asyncio.get_running_loop()
            waiter = self._waiter = loop.create_future()
            timer = loop.call_later(seconds, _expire, waiter)
            try:
                await waiter
            except BaseException:
                self.ignore()
                raise
            finally:
                timer.cancel()
                self._waiter = None
        if self._is_given_up:
            raise Busy
        if max(self._size, self._length) > most:
            self.ignore()
            raise TooLarge
        if self.error is not None:
            raise BrokenBody(self.error)
        parts = self._parts
        self._let_go()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # The connection's side

    def take(self, part: bytes) -> bool:
        """False when no more should come for now."""
        if self._is_ignored:
            return True
        self._size += len(part)
        if self._size > FREE_BYTES and self._budget is not None:
            self._budget.hold(self, len(part))
            if self._is_given_up:
                return True
        if self._size <= self._most:
            self._parts.append(part)
            return True
        if self._is_wanted:
            self.ignore()
            self._wake()
            return True
        self._parts.append(part)
        return False

    def ignore(self) -> None:
        """Nobody reads it any more."""
        self._is_ignored = True
        self._let_go()

    def give_up(self) -> None:
        """There is no memory for it."""
        self._is_given_up = True
        self.ignore()
        self._wake()

    def _let_go(self) -> None:
        self._parts = []
        if self._size > FREE_BYTES and self._budget is not None:
            self._budget.release(self)

    def finish(self) -> None:
        self.is_complete = True
        self._wake()

    def fail(self, error: str) -> None:
        self.error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class Request:
    """`target` is what stands between method and version on the request line."""

    __slots__ = ("headers", "is_persistent", "method", "minor_version", "stream", "target")

    def __init__(self, method: str, target: str, headers: Headers, stream: Body, minor_version: int = 1) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.stream = stream
        self.minor_version = minor_version
        self.is_persistent = False
        """The client may send another one after it. Known when the body is complete."""

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    async def read(self, most: int, seconds: float) -> bytes:
        return await self.stream.read(most, seconds)
