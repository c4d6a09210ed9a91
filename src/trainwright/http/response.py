"""What a server answers: bytes that are ready, or a body that is written piece by piece to a `ConnectionSink`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from trainwright.http.dates import DateHeader
from trainwright.http.duplex import Duplex

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

HeaderFields = Sequence[tuple[str, str]]


class Response(msgspec.Struct, frozen=True):
    """`fields` are all headers but those that frame the message; by default Content-Type and Date."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    fields: HeaderFields | None = None


def _nothing() -> None: ...


class StreamedResponse(msgspec.Struct, frozen=True):
    """Status 200, and a body that `send` writes until it ends. Cancelled when the client leaves.

    Of `send` and `abandon` exactly one is called: the second if the client left before the first, or wants no body.
    """

    send: Callable[[ConnectionSink], Awaitable[None]]
    content_type: str = TEXT
    fields: HeaderFields | None = None
    abandon: Callable[[], None] = _nothing


class UpgradedResponse(msgspec.Struct, frozen=True):
    """Status 101: from here on the connection speaks what `fields` say, and `serve` does so. Cancelled when the client
    leaves; the connection is closed when it returns.

    Of `serve` and `abandon` exactly one is called, as of a stream's.
    """

    serve: Callable[[Duplex], Awaitable[None]]
    fields: HeaderFields
    abandon: Callable[[], None] = _nothing


def text(body: str, status: int = 200) -> Response:
    return Response(status, body.encode())


class Outlet(Protocol):
    """A connection, as far as a stream needs it."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def unsent(self) -> int: ...

    def is_closing(self) -> bool: ...

    def abort(self) -> None: ...


class ConnectionSink:
    """One connection in the middle of a streamed body."""

    __slots__ = ("_is_chunked", "_outlet")

    def __init__(self, outlet: Outlet, *, is_chunked: bool) -> None:
        self._outlet = outlet
        self._is_chunked = is_chunked

    def write(self, data: bytes) -> None:
        """Takes the bytes at once, however far the client is behind."""
        if data:  # an empty chunk would end the body
            self._outlet.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    async def send(self, data: bytes) -> None:
        """Takes the bytes, and waits while the client is far behind. Raises `ConnectionError` if it has left."""
        if self._outlet.is_closing():
            raise ConnectionResetError("the client has left")
        self.write(data)
        await self._outlet.drain()

    def unread(self) -> int:
        return self._outlet.unsent()

    def is_closing(self) -> bool:
        return self._outlet.is_closing()

    def abort(self) -> None:
        self._outlet.abort()


PHRASES = {
    101: "Switching Protocols",
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    206: "Partial Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
WITHOUT_BODY = (204, 304)
_date = DateHeader()


def head(response: Response | StreamedResponse, *, keep: bool, is_chunked: bool) -> bytes:
    """The head of an answer, to its empty line."""
    fields = response.fields
    if fields is None:
        fields = (("Content-Type", response.content_type), ("Date", _date.at(time.time())))
    status = response.status if isinstance(response, Response) else 200
    lines = [f"HTTP/1.1 {status} {PHRASES.get(status, '')}", *[f"{name}: {_one_line(value)}" for name, value in fields]]
    if isinstance(response, StreamedResponse):
        if is_chunked:
            lines.append("Transfer-Encoding: chunked")
    elif status not in WITHOUT_BODY:
        lines.append(f"Content-Length: {len(response.body)}")
    if not keep:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode()


def upgrade_head(response: UpgradedResponse) -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", *[f"{name}: {_one_line(value)}" for name, value in response.fields]]
    return "\r\n".join([*lines, "", ""]).encode()


def _one_line(value: str) -> str:
    """A header cannot end early and begin another one."""
    return value if "\n" not in value and "\r" not in value else value.replace("\r", " ").replace("\n", " ")
