"""The interface to the network: a `Transport` sends a `Request` and returns bytes.

Tests and fault injection replace the transport; nothing above it knows HTTP. Every call has a deadline, every stream
an idle limit. A transport raises only `Unreachable` (nothing was sent) and `UnknownOutcome` (something was); error
statuses are answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from trainwright.client.requests import Request


class Answer(msgspec.Struct, frozen=True):
    """A whole answer: status, headers (case-insensitive look-up) and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """An answer whose body is still being received."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """The rest of the body, for the short bodies of errors."""
        ...

    def lines(self) -> AsyncIterator[bytes]:
        """Complete lines, as they arrive, without their newline. Ends when the server ends the stream."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Bytes as they arrive."""
        ...


class Transport(Protocol):
    async def send(self, request: Request, *, deadline: float) -> Answer:
        """The answer within `deadline` seconds."""
        ...

    def stream(self, request: Request, *, deadline: float, idle: float) -> AbstractAsyncContextManager[Stream]:
        """An open stream: headers within `deadline` seconds, then never more than `idle` seconds between bytes."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...
