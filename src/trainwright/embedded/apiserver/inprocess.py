"""The client's transport to a server in the same process: no socket, no TLS, and time by the server's clock.

Only the wire is left out. A request has the headers that a client would send and goes through the same boundary
(`http/handler.py`): Host check, authentication, authorization, the handling of failures, warnings.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from trainwright.client.errors import UnknownOutcome, Unreachable
from trainwright.client.requests import Request as ClientRequest
from trainwright.client.transport import Answer as ClientAnswer
from trainwright.client.transport import Stream
from trainwright.clock import Clock, deadline, happens_within
from trainwright.embedded.apiserver.http.bodies import MAX_BODY, too_large
from trainwright.embedded.apiserver.http.requests import Answer, Request, StreamedAnswer, UpgradedAnswer
from trainwright.embedded.apiserver.server import Server
from trainwright.http.headers import Headers

FAR_BEHIND = 64 * 1024  # unread bytes from which on a sender that can wait does


class InProcessTransport:
    """Implements `trainwright.client.transport.Transport`. Without a token it is the administrator's."""

    def __init__(self, server: Server, *, token: str | None = None, user_agent: str = "trainwright") -> None:
        self.server = server
        self._token = server.credentials.admin_token if token is None else token
        self._user_agent = user_agent

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, request: ClientRequest, *, deadline: float) -> ClientAnswer:
        answer = await self._ask(request, deadline)
        if isinstance(answer, StreamedAnswer):
            async with self._reading(request, answer, deadline) as stream:
                return ClientAnswer(stream.status, stream.headers, await stream.read())
        return ClientAnswer(answer.status, self._headers(answer), answer.body)

    @asynccontextmanager
    async def stream(self, request: ClientRequest, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        answer = await self._ask(request, deadline)
        if isinstance(answer, StreamedAnswer):
            async with self._reading(request, answer, idle) as stream:
                yield stream
        else:
            whole = Pipe(self.server.clock, idle, request.path)
            whole.write(answer.body)
            whole.end()
            yield PipeStream(answer.status, self._headers(answer), whole)

    @asynccontextmanager
    async def _reading(self, request: ClientRequest, answer: StreamedAnswer, idle: float) -> AsyncIterator[PipeStream]:
        pipe = Pipe(self.server.clock, idle, request.path)
        sending = asyncio.create_task(_send(answer, pipe), name=f"answers {request.method} {request.path}")
        try:
            yield PipeStream(200, self._headers(answer), pipe)
        finally:
            pipe.leave()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _ask(self, request: ClientRequest, seconds: float) -> Answer | StreamedAnswer:
        if not self.server.is_running:
            raise Unreachable("cannot connect: the server is not running")
        fields = [("Host", "localhost"), ("Accept", request.accept), ("User-Agent", self._user_agent)]
        if self._token:
            fields.append(("Authorization", f"Bearer {self._token}"))
        if request.body is not None:
            fields.append(("Content-Type", request.content_type))

        async def body() -> bytes:
            if request.body is not None and len(request.body) > MAX_BODY:
                raise too_large()
            return request.body or b""

        try:
            async with deadline(self.server.clock, seconds):
                answer = await self.server.answer(Request.of(request.method, request.target, Headers.of(fields), body))
                assert not isinstance(answer, UpgradedAnswer), "nothing here asks for another protocol"
                return answer
        except TimeoutError:
            raise UnknownOutcome(f"{request.path}: no answer within {seconds:.0f} s") from None

    def _headers(self, answer: Answer | StreamedAnswer) -> Mapping[str, str]:
        return Headers.of(self.server.handler.header_fields(answer))


async def _send(answer: StreamedAnswer, pipe: Pipe) -> None:
    try:
        await answer.send(pipe)
    finally:
        pipe.end()


class Pipe:
    """A `Sink` whose reader is in this process."""

    def __init__(self, clock: Clock, idle: float, path: str) -> None:
        self._clock = clock
        self._idle = idle
        self._path = path
        self._pieces: collections.deque[bytes] = collections.deque()
        self._unread = 0
        self._ended = False  # no more will be written
        self._broken = False  # the writer gave up; what is unread is lost
        self._left = False  # the reader gave up
        self._changed: asyncio.Future[None] | None = None  # whoever waits for the other side

    # The server's side

    def write(self, data: bytes) -> None:
        if data and not self.is_closing():
            self._pieces.append(data)
            self._unread += len(data)
            self._tell()

    async def send(self, data: bytes) -> None:
        while self._unread > FAR_BEHIND and not self.is_closing():
            await self._wait()
        if self.is_closing():
            raise ConnectionResetError("the reader has left")
        self.write(data)

    def unread(self) -> int:
        return self._unread

    def is_closing(self) -> bool:
        return self._ended or self._broken or self._left

    def abort(self) -> None:
        self._broken = True
        self._pieces.clear()
        self._tell()

    def end(self) -> None:
        self._ended = True
        self._tell()

    # The reader's side

    async def read(self) -> bytes:
        """The next piece, empty at the end. Raises `UnknownOutcome` if the stream broke or none came in time."""
        while not self._pieces:
            if self._broken:
                raise UnknownOutcome(f"{self._path}: the connection broke")
            if self._ended:
                return b""
            if not await happens_within(self._clock, self._idle, self._waiting()):
                raise UnknownOutcome(f"{self._path}: nothing came for {self._idle:.0f} s")
        piece = self._pieces.popleft()
        self._unread -= len(piece)
        self._tell()
        return piece

    def leave(self) -> None:
        self._left = True
        self._tell()

    def _waiting(self) -> asyncio.Future[None]:
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    async def _wait(self) -> None:
        await asyncio.shield(self._waiting())

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None


class PipeStream:
    """Implements `trainwright.client.transport.Stream`."""

    def __init__(self, status: int, headers: Mapping[str, str], pipe: Pipe) -> None:
        self.status = status
        self.headers = headers
        self._pipe = pipe

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        while piece := await self._pipe.read():
            yield piece

    async def lines(self) -> AsyncIterator[bytes]:
        rest = b""
        async for piece in self.chunks():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                if line:
                    yield line
        if rest:
            yield rest
