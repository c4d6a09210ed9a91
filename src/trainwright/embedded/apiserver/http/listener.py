"""HTTPS in front of the boundary: aiohttp's requests become ours, our answers its responses."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from ssl import SSLContext

from aiohttp import web
from multidict import CIMultiDict

from trainwright.clock import Clock, deadline
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.bodies import MAX_BODY, too_large
from trainwright.embedded.apiserver.http.handler import Handler
from trainwright.embedded.apiserver.http.requests import Answer, Request, StreamedAnswer

BACKLOG = 1024
MAX_HEADER = 32 * 1024
BODY_SECONDS = 30.0
KEEP_ALIVE_SECONDS = 120.0
SHUTDOWN_SECONDS = 1.0


def bind(port: int) -> socket.socket:
    """A socket on loopback that takes connections, which nobody answers yet. Raises `OSError` if the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


@contextlib.asynccontextmanager
async def serving(handler: Handler, clock: Clock, listener: socket.socket, tls: SSLContext) -> AsyncIterator[None]:
    """While the block runs, requests on the socket are answered."""

    async def respond(raw: web.BaseRequest) -> web.StreamResponse:
        async def read_body() -> bytes:
            return await _read_body(raw, clock)

        request = Request.of(raw.method, raw.raw_path, raw.headers, read_body)
        answer = await handler.answer(request)
        headers = CIMultiDict(handler.header_fields(answer))
        if isinstance(answer, Answer):
            return web.Response(status=answer.status, body=answer.body, headers=headers)
        return await _stream(raw, answer, headers)

    server = web.Server(
        respond,
        access_log=None,
        handler_cancellation=True,
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
    )
    runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.SockSite(runner, listener, ssl_context=tls, backlog=BACKLOG).start()
        yield
    finally:
        await runner.cleanup()


async def _stream(raw: web.BaseRequest, answer: StreamedAnswer, headers: CIMultiDict[str]) -> web.StreamResponse:
    response = web.StreamResponse(status=200, headers=headers)
    response.enable_chunked_encoding()
    try:
        await response.prepare(raw)
        if raw.transport is None:
            raise ConnectionResetError("the client has left")
        sink = ConnectionSink(response, raw.transport)
    except BaseException:
        answer.abandon()
        raise
    await answer.send(sink)
    if not sink.is_closing():
        await response.write_eof()
    return response


class ConnectionSink:
    """A `Sink` that is one HTTP/1.1 connection in the middle of a chunked body.

    Watches write past aiohttp's own writer, which would take a coroutine for each piece and watcher.
    """

    def __init__(self, response: web.StreamResponse, transport: asyncio.WriteTransport) -> None:
        self._response = response
        self._transport = transport

    def write(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def send(self, data: bytes) -> None:
        await self._response.write(data)

    def unread(self) -> int:
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def abort(self) -> None:
        self._transport.abort()


async def _read_body(raw: web.BaseRequest, clock: Clock) -> bytes:
    """All of it, up to the limit, within a time."""
    if not raw.can_read_body:
        return b""
    parts: list[bytes] = []
    size = 0
    try:
        if raw.content.is_eof():  # a short body comes with the head: no need to watch the time
            data = raw.content.read_nowait()
            if len(data) > MAX_BODY:
                raise too_large()
            return data
        async with deadline(clock, BODY_SECONDS):
            async for data in raw.content.iter_any():
                size += len(data)
                if size > MAX_BODY:
                    raise too_large()
                parts.append(data)
    except TimeoutError:
        raise StatusError(408, "the body of the request did not arrive in time", reason="Timeout") from None
    except web.RequestPayloadError as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from None
    return b"".join(parts)
