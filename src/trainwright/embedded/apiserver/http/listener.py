"""HTTPS in front of the boundary: requests of a connection become ours, our answers its responses."""

from __future__ import annotations

import socket
from ssl import SSLContext

from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.bodies import MAX_BODY, too_large
from trainwright.embedded.apiserver.http.handler import Handler
from trainwright.embedded.apiserver.http.requests import Answer, Request, UpgradedAnswer
from trainwright.http import request as http
from trainwright.http.response import Response, StreamedResponse, UpgradedResponse
from trainwright.http.server import BACKLOG, Server

BODY_SECONDS = 30.0
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


def serving(handler: Handler, listener: socket.socket, tls: SSLContext) -> Server:
    """While the block runs (`async with`), requests on the socket are answered."""

    async def answer(raw: http.Request) -> Response | StreamedResponse | UpgradedResponse:
        async def read_body() -> bytes:
            return await _read_body(raw)

        answer = await handler.answer(Request.of(raw.method, raw.target, raw.headers, read_body))
        if isinstance(answer, UpgradedAnswer):
            return UpgradedResponse(answer.serve, answer.fields, answer.abandon)
        fields = handler.header_fields(answer)
        if isinstance(answer, Answer):
            return Response(answer.status, answer.body, answer.content_type, fields)
        return StreamedResponse(answer.send, answer.content_type, fields, answer.abandon)

    return Server(answer, listener, tls, shutdown_seconds=SHUTDOWN_SECONDS)


async def _read_body(raw: http.Request) -> bytes:
    """All of it, up to the limit, within a time."""
    try:
        return await raw.read(MAX_BODY, BODY_SECONDS)
    except http.TooLarge:
        raise too_large() from None
    except http.Busy:
        text = "too many large requests come in at the same time; try again"
        raise StatusError(429, text, reason="TooManyRequests", retry_after=1) from None
    except TimeoutError:
        raise StatusError(408, "the body of the request did not arrive in time", reason="Timeout") from None
    except http.BrokenBody as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from None
