"""The server's side of one HTTP/1.1 connection: requests are answered in their order, one at a time.

In: bytes of a client that may be slow, greedy or hostile. Out: requests for the server's answering function, as soon as
their head is there, and its answers.

- A head has a limit in bytes and in seconds. What is not framed in exactly one way is refused, so that nobody in front
  of us can see another request than we do.
- A body is taken in as far as somebody reads it. An answer may come before the body has: then the connection ends
  after it, and what the client still sends is thrown away for a while, so that it can read the answer.
- A client that sends ahead, or does not read its answers, waits.
- What all clients together may take has limits, too (`limits.py`).
- When the client leaves, the answer that is being made is cancelled.
- A request that asks for another protocol is the last one. What follows it waits until the answer says whether that is
  spoken.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

import httptools

from trainwright.http.duplex import Duplex
from trainwright.http.headers import Fields, Headers
from trainwright.http.limits import Budget, Connections
from trainwright.http.request import Body, Request
from trainwright.http.response import (
    WITHOUT_BODY,
    ConnectionSink,
    Response,
    StreamedResponse,
    UpgradedResponse,
    head,
    text,
    upgrade_head,
)

log = logging.getLogger(__name__)

LARGEST_HEAD = 64 * 1024
WORTH_A_WRITE = 64 * 1024
"""A body that is larger is not copied behind its head."""
MOST_FIELDS = 256
READ_SECONDS = 30.0
"""From the first byte of a request to the last of its head; and what readers of a body should allow."""
IDLE_SECONDS = 120.0
"""Between two requests, and for a client to take its answer; the first request has `READ_SECONDS`. Longer than Go's
clients keep a connection, so that they close it and not we."""
LINGER_SECONDS = 5.0
"""After an answer to a request that was not read to its end."""

Answer = Callable[[Request], Awaitable[Response | StreamedResponse | UpgradedResponse]]


class Refused(Exception):
    """A head that is not answered by the application. The parser, in whose callback it is raised, stops."""


class Connection(asyncio.Protocol):
    """One client. `connections` has it for as long as it is there."""

    __slots__ = (
        "_answer",
        "_budget",
        "_connections",
        "_drained",
        "_duplex",
        "_fields",
        "_is_closing",
        "_is_head_timed",
        "_is_heard",
        "_is_in_head",
        "_is_reading_paused",
        "_parser",
        "_receiving",
        "_refusal",
        "_silent",
        "_size",
        "_target",
        "_timer",
        "_transport",
        "_waiting",
        "has_asked",
        "working",
    )

    def __init__(self, answer: Answer, connections: Connections[Connection], budget: Budget) -> None:
        self._answer = answer
        self._connections = connections
        self._budget = budget
        self.has_asked = False
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self.working: asyncio.Task[None] | None = None
        """What makes an answer at the moment."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._is_reading_paused = False
        self._drained: asyncio.Future[None] | None = None  # while the client is far behind
        self._duplex: Duplex | None = None  # has what follows a request for another protocol
        # Of the request that is coming in:
        self._is_in_head = False
        self._is_head_timed = False
        self._fields: Fields = []
        self._target = b""
        self._size = 0
        self._receiving: Request | None = None
        self._refusal = text("400: Bad Request", 400)
        self._is_heard = False  # the parser has called us since the last data came
        self._silent = 0  # bytes since it last did

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def close(self) -> None:
        """After the answer that is being made, if there is one."""
        self._is_closing = True
        if self.working is None:
            self._end()

    @property
    def is_idle(self) -> bool:
        return self.working is None

    @property
    def is_slow(self) -> bool:
        return self.working is not None and self._receiving is not None

    # What a stream needs

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    async def drain(self) -> None:
        """Waits while the client is far behind."""
        if self._drained is not None:
            await asyncio.shield(self._drained)
        if self.transport.is_closing():
            raise ConnectionResetError("the client has left")

    def unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self.transport.is_closing()

    def abort(self) -> None:
        self.transport.abort()

    def finish(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
            self._expect_within(IDLE_SECONDS)

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._expect_within(READ_SECONDS)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._parser = None  # it holds this object
        self._stop_timer()
        self.resume_writing()
        if self._receiving is not None:
            self._receiving.stream.ignore()
        if self._duplex is not None:
            self._duplex.end()
        if self.working is not None:
            self.working.cancel()  # nobody waits for the answer

    def pause_writing(self) -> None:
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def data_received(self, data: bytes) -> None:
        if self._duplex is not None:
            self._duplex.feed(data)
            return
        if self._parser is None:
            return
        self._is_heard = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._duplex = Duplex(self)
            self._duplex.feed(data[upgrade.args[0] :])
            self._stop_parsing("")  # the request for it is answered, in HTTP
            return
        except httptools.HttpParserError as error:
            self._stop_parsing(str(error))
            return
        # The parser keeps what it has of a header, a trailer or a chunk's extension, and does not count.
        self._silent = 0 if self._is_heard else self._silent + len(data)
        if self._silent > LARGEST_HEAD:
            self._refusal = text("431: Request Header Fields Too Large", 431)
            self._stop_parsing("a line does not end")
        elif self._is_in_head and not self._is_head_timed and self.working is None:
            self._expect_head()

    def _stop_parsing(self, why: str) -> None:
        """Nothing more can be read. What waits for an answer gets it."""
        self._parser = None
        self._is_closing = True
        if self._receiving is not None:
            self._receiving.stream.fail(why)
            self._receiving = None
            if self.working is None:  # and was answered before
                self._end()
        elif self.working is None:
            self.write(head(self._refusal, keep=False, is_chunked=False) + self._refusal.body)
            self._end()

    # The parser's side

    def on_message_begin(self) -> None:
        self._fields, self._target, self._size = [], b"", 0
        self._is_in_head = self._is_heard = True

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._count(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if self._is_in_head:  # else it follows a chunked body, where no header may be added
            self._fields.append((name, value))

    def _count(self, size: int) -> None:
        self._is_heard = True
        self._size += size
        if self._size > LARGEST_HEAD or len(self._fields) >= MOST_FIELDS:
            self._refusal = text("431: Request Header Fields Too Large", 431)
            raise Refused("the headers are too large")

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        version = parser.get_http_version()
        headers = Headers(self._fields)
        _check_framing(version, self._fields, headers, is_upgrade=parser.should_upgrade())
        self.has_asked = True
        body = Body(int(headers.get("Content-Length", "0")), self._continue, self._budget)
        target = self._target.decode(errors="replace")
        request = Request(parser.get_method().decode(), target, headers, body, int(version[-1]))
        self._receiving = request
        self._is_in_head = self._is_head_timed = False
        self._is_heard = True
        self._size = 0
        self._waiting.append(request)
        if self.working is None:
            self._stop_timer()
            self.working = asyncio.get_running_loop().create_task(self._work())
        elif len(self._waiting) == 1:
            self.pause_reading()  # a client that sends ahead waits for its answers

    def on_body(self, part: bytes) -> None:
        self._is_heard = True
        if self._receiving is not None and not self._receiving.stream.take(part):
            self.pause_reading()

    def on_message_complete(self) -> None:
        self._is_heard = True
        request, self._receiving = self._receiving, None
        assert self._parser is not None
        if request is None:
            return
        request.is_persistent = bool(request.minor_version) and self._parser.should_keep_alive()
        request.stream.finish()
        if self.working is None:
            self._end()  # it has been answered before it was complete

    def _continue(self) -> None:
        """The body of the request that is being answered is wanted."""
        request = self._receiving
        if request is not None and request.headers.get("Expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.resume_reading()

    # Answering

    async def _work(self) -> None:
        try:
            while self._waiting:
                if self._drained is not None:
                    self._expect_within(IDLE_SECONDS)
                    await self.drain()
                    self._stop_timer()
                request = self._waiting.popleft()
                if not await self._serve(request):
                    self._end(request)
                    return
        except ConnectionError:
            self.abort()
            return
        finally:
            self.working = None
        self.resume_reading()
        self._connections.rest(self)
        if self._is_in_head:
            self._expect_head()
        else:
            self._expect_within(IDLE_SECONDS)

    async def _serve(self, request: Request) -> bool:
        """Answers one request. Whether the connection can go on."""
        try:
            response = await self._answer(request)
        except ConnectionError:
            raise
        except Exception as error:
            log.error("%s %s: %r", request.method, request.path, error, exc_info=error)
            response = text("500: Internal Server Error", 500)
        keep = request.is_persistent and not self._is_closing
        if isinstance(response, UpgradedResponse):
            await self._switch(request, response)
            return False
        if isinstance(response, StreamedResponse):
            await self._stream(request, response, keep=keep)
        else:
            begin = head(response, keep=keep, is_chunked=False)
            body = b"" if request.method == "HEAD" or response.status in WITHOUT_BODY else response.body
            if len(body) > WORTH_A_WRITE:
                self.write(begin)
                self.write(body)
            else:
                self.write(begin + body)
        return keep and not self._is_closing

    async def _stream(self, request: Request, response: StreamedResponse, *, keep: bool) -> None:
        is_chunked = request.minor_version > 0
        if self.transport.is_closing():
            response.abandon()
            raise ConnectionResetError("the client has left")
        self.write(head(response, keep=keep, is_chunked=is_chunked))
        if request.method == "HEAD":
            response.abandon()
            return
        try:
            await response.send(ConnectionSink(self, is_chunked=is_chunked))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.error("%s %s broke off: %r", request.method, request.path, error, exc_info=error)
            raise ConnectionAbortedError("the answer broke off") from error
        if is_chunked and not self.transport.is_closing():
            self.write(b"0\r\n\r\n")

    async def _switch(self, request: Request, response: UpgradedResponse) -> None:
        if self._duplex is None or self.transport.is_closing():
            response.abandon()
            raise ConnectionResetError("the client has left, or has not asked for another protocol")
        self.write(upgrade_head(response))
        try:
            await response.serve(self._duplex)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.error("%s %s broke off: %r", request.method, request.path, error, exc_info=error)
            raise ConnectionAbortedError("the connection broke off") from error

    def _end(self, request: Request | None = None) -> None:
        """Closes when everything is written; after a request that still comes in, when it has, or after a while."""
        self._is_closing = True
        self._waiting.clear()
        if request is not None and request is self._receiving and self._parser is not None:
            request.stream.ignore()  # a client that is cut off while it sends never reads the answer
            self.resume_reading()
            self._expect_within(LINGER_SECONDS)
        elif not self.transport.is_closing():
            self.transport.close()
            self._expect_within(IDLE_SECONDS)

    def pause_reading(self) -> None:
        if not self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = False
            self.transport.resume_reading()

    def _expect_head(self) -> None:
        self._is_head_timed = True
        self._expect_within(READ_SECONDS)

    def _expect_within(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _check_framing(version: str, fields: Fields, headers: Headers, *, is_upgrade: bool) -> None:
    """Where a message ends must be beyond doubt. The parser refuses what contradicts itself; this is the rest."""
    if version not in ("1.0", "1.1"):
        raise Refused("another version of HTTP")
    names = [name.lower() for name, _ in fields]
    if names.count(b"host") > 1:
        raise Refused("more than one Host")
    codings, lengths = names.count(b"transfer-encoding"), names.count(b"content-length")
    if codings + lengths > 1:
        raise Refused("more than one length")
    if codings and (version == "1.0" or headers["Transfer-Encoding"].lower() != "chunked"):
        raise Refused("a Transfer-Encoding that is not chunked")
    if is_upgrade and (codings or headers.get("Content-Length", "0") != "0"):
        raise Refused("a body and another protocol")  # the parser takes the body for the other protocol
