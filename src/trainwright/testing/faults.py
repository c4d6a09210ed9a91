"""Faults in the connection to the API server, injected into the client's transport.

In: a real `Transport` and a list of `Rule`s. Out: a `Transport` that fails exactly where a rule says and records every
request. The effect of each fault on the server:

    DropBefore      nothing: the connection broke before the request was sent
    NoServer        nothing: there is nobody to connect to, or its name is unknown
    DropAfter       the request was carried out, its answer is lost
    Respond         nothing: the server says 409, 422, 429, 500, 503, 504 …
    Delay           the request, later
    Double          the request, twice, as a proxy may send it; the first answer counts
    Freeze          the request, when the freeze is over: until then nothing of this process goes out or comes in
    CutStream       a watch that ends, cleanly or not, after some events
    ExpireStream    a watch that answers 410 after some events, as kube-apiserver does: an ERROR event in a 200 stream
    Crash           nothing further: the process is gone, before or after the request was carried out
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from trainwright.client.errors import UnknownOutcome, Unreachable
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport
from trainwright.clock import Clock, SystemClock

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class DropBefore:
    pass


@dataclass(frozen=True)
class NoServer:
    pass


@dataclass(frozen=True)
class DropAfter:
    pass


@dataclass(frozen=True)
class Respond:
    status: int
    message: str = "injected by the test"
    retry_after: int | None = None
    body: bytes | None = None  # in place of a Status: HTML of a proxy, truncated JSON

    def answer(self) -> Answer:
        headers = {"Content-Type": "application/json"}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return Answer(
            self.status, headers, self.body if self.body is not None else status_body(self.status, self.message)
        )


@dataclass(frozen=True)
class Delay:
    seconds: float


@dataclass(frozen=True)
class Double:
    pass


@dataclass(frozen=True)
class Freeze:
    seconds: float


@dataclass(frozen=True)
class CutStream:
    after_lines: int = 0
    clean: bool = True


@dataclass(frozen=True)
class ExpireStream:
    after_lines: int = 0


@dataclass(frozen=True)
class Crash:
    after: bool = True


Fault = DropBefore | NoServer | DropAfter | Respond | Delay | Double | Freeze | CutStream | ExpireStream | Crash


@dataclass
class Rule:
    """The requests that a fault hits: those that match, from the `nth` on, `times` in a row (None: for ever).

    `when` is a further condition on the request.
    """

    fault: Fault
    method: str = ".*"
    path: str = ".*"
    nth: int = 1
    times: int | None = 1
    writes_only: bool = False
    when: Callable[[Request], bool] | None = None
    seen: int = field(default=0, init=False)

    def hits(self, request: Request) -> bool:
        if self.writes_only and not request.is_write:
            return False
        if not re.fullmatch(self.method, request.method) or not re.search(self.path, request.target):
            return False
        if self.when is not None and not self.when(request):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)


@dataclass(frozen=True)
class Answered:
    """A request that the server answered, and the answer (none for a stream)."""

    request: Request
    status: int
    body: bytes
    at: float


class FaultyTransport:
    """Wraps a transport. The first rule that matches decides. After a `Crash` no request is sent and none returns."""

    def __init__(self, inner: Transport, rules: list[Rule] | None = None, clock: Clock | None = None) -> None:
        self._inner = inner
        self._clock = clock or SystemClock()
        self.rules = rules if rules is not None else []
        self.asked: list[Request] = []
        self.answered: list[Answered] = []
        self.crashed = asyncio.Event()
        self.crashed_at = 0.0
        self._frozen_until = float("-inf")

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.asked if request.is_write]

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def send(self, request: Request, *, deadline: float) -> Answer:
        fault = await self._meet(request)
        match fault:
            case Respond():
                return fault.answer()
            case Delay(seconds):
                if seconds >= deadline:
                    await self._clock.sleep(deadline)
                    raise UnknownOutcome(f"{request.path}: no answer within {deadline:.0f} s (injected)")
                await self._clock.sleep(seconds)
            case Freeze(seconds):
                self._frozen_until = self._clock.now() + seconds
                await self._thaw()
        answer = await self._inner.send(request, deadline=deadline)
        if isinstance(fault, Double):
            again = await self._inner.send(request, deadline=deadline)
            self.answered.append(Answered(request, again.status, again.body, self._clock.wall()))
        await self._thaw()
        self.answered.append(Answered(request, answer.status, answer.body, self._clock.wall()))
        await self._lose(request, fault)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        fault = await self._meet(request)
        match fault:
            case Respond():
                yield _WholeStream(fault.answer())
                return
            case Delay(seconds):
                await self._clock.sleep(seconds)
        async with self._inner.stream(request, deadline=deadline, idle=idle) as stream:
            self.answered.append(Answered(request, stream.status, b"", self._clock.wall()))
            await self._lose(request, fault)
            yield _EndingStream(stream, fault) if isinstance(fault, CutStream | ExpireStream) else stream

    async def _meet(self, request: Request) -> Fault | None:
        """Applies a fault before the request is sent."""
        if self.crashed.is_set():
            await asyncio.Event().wait()
        await self._thaw()
        self.asked.append(request)
        fault = next((rule.fault for rule in self.rules if rule.hits(request)), None)
        if isinstance(fault, DropBefore):
            raise UnknownOutcome(f"{request.path}: the connection broke (injected before the request was sent)")
        if isinstance(fault, NoServer):
            raise Unreachable("cannot connect (injected)")
        if isinstance(fault, Crash) and not fault.after:
            await self._die()
        return fault

    async def _thaw(self) -> None:
        while (left := self._frozen_until - self._clock.now()) > 0:
            await self._clock.sleep(left)

    async def _lose(self, request: Request, fault: Fault | None) -> None:
        """Applies a fault to the answer."""
        if isinstance(fault, DropAfter):
            raise UnknownOutcome(f"{request.path}: the connection broke (injected after the request was carried out)")
        if isinstance(fault, Crash):
            await self._die()

    async def _die(self) -> None:
        self.crashed_at = self._clock.wall()
        self.crashed.set()
        await asyncio.Event().wait()  # whoever waits is cancelled by the test, as a dead process is


class _WholeStream:
    """A stream with one answer, as of a refused watch."""

    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._body = answer.body

    async def read(self) -> bytes:
        return self._body

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._body.splitlines():
            yield line

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


class _EndingStream:
    """A stream that ends early: cleanly, with a broken connection, or with an ERROR event for an expired version."""

    def __init__(self, inner: Stream, fault: CutStream | ExpireStream) -> None:
        self._inner = inner
        self._fault = fault
        self.status = inner.status
        self.headers = inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        async for line in self.lines():
            yield line + b"\n"

    async def lines(self) -> AsyncIterator[bytes]:
        passed = 0
        if passed < self._fault.after_lines:
            async for line in self._inner.lines():
                yield line
                passed += 1
                if passed >= self._fault.after_lines:
                    break
        if isinstance(self._fault, ExpireStream):
            gone = msgspec.Raw(status_body(410, "too old resource version: 1 (2)"))
            yield msgspec.json.encode({"type": "ERROR", "object": gone})
        elif not self._fault.clean:
            raise UnknownOutcome("the connection broke (injected in the middle of a stream)")


def status_body(code: int, message: str) -> bytes:
    """A Status as an API server sends it."""
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": REASONS.get(code, "Unknown"),
            "code": code,
        }
    )
