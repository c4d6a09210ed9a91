"""The transport over the network: HTTP/1.1 on asyncio, parsed by llhttp (httptools).

Every request has a connection for itself while it lasts. A connection that was kept may have been closed by the server
in the meantime: a GET is then repeated on a new one, and for anything else the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from trainwright.client.credentials import Credential
from trainwright.client.errors import ConfigError, RequestError, UnknownOutcome, Unreachable, error_of_answer
from trainwright.client.kubeconfig import Connection
from trainwright.client.requests import Request
from trainwright.client.tls import client_context
from trainwright.client.transport import Answer
from trainwright.http.exchange import PIECE, Broken, Exchange, Reply
from trainwright.http.headers import Headers
from trainwright.http.pool import Address, BadAddress, Pool
from trainwright.http.websocket import BadHandshake, WebSocket, check_reply, request_fields
from trainwright.version import __version__

LOOPBACK = ("localhost", "127.0.0.1", "::1")
USER_AGENT = f"trainwright/{__version__}"


class HttpStream:
    """An answer whose body is still being received."""

    def __init__(self, reply: Reply, where: str, *, deadline: float, idle: float) -> None:
        self._reply = reply
        self._where = where
        self._deadline = deadline
        self._idle = idle
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers

    async def read(self) -> bytes:
        with _translated(self._where):
            return await self._reply.body(self._deadline)

    async def lines(self) -> AsyncIterator[bytes]:
        with _translated(self._where):
            async for line in self._reply.lines(self._idle):
                yield line

    async def chunks(self) -> AsyncIterator[bytes]:
        with _translated(self._where):
            async for chunk in self._reply.chunks(self._idle):
                yield chunk


class HttpTransport:
    """Sends requests to one server. `async with`, or `open()` and `close()`."""

    def __init__(self, connection: Connection, *, user_agent: str = USER_AGENT) -> None:
        if connection.proxy_url and not connection.proxy_url.startswith(("http://", "https://")):
            raise ConfigError(f"proxy-url {connection.proxy_url!r}: only http and https proxies are supported")
        self._connection = connection
        try:
            self._server = Address(connection.server, "server")
            self._proxy = Address(connection.proxy_url, "proxy-url") if connection.proxy_url else None
        except BadAddress as error:
            raise ConfigError(str(error)) from error
        self._prefix, self._fixed = self._server.prefix, f"Host: {self._server.name}\r\nUser-Agent: {user_agent}\r\n"
        if self._proxy is not None and not self._server.is_tls:
            self._prefix = f"http://{self._server.name}{self._prefix}"
            if self._proxy.authorization:
                self._fixed += f"Proxy-Authorization: {self._proxy.authorization}\r\n"
        self._pool: Pool | None = None
        self._tls: dict[tuple[bytes | None, bytes | None], ssl.SSLContext] = {}

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        self._pool = Pool(self._server, self._proxy, self._connection.tls_server_name)

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    async def send(self, request: Request, *, deadline: float) -> Answer:
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline
        attempt = 1
        while True:
            pool, context, data = await self._prepare(request)
            exchange = await self._take(pool, context)
            reply = exchange.request(data, request.read_buffer)
            try:
                await _send_rest(exchange, request, end - loop.time())
                body = await reply.body(end - loop.time())
            except Broken as error:
                if _was_stale(request, exchange, reply):
                    continue
                raise _broke(request.path, error) from error
            except TimeoutError as error:
                raise UnknownOutcome(f"{request.path}: no answer within the deadline") from error
            finally:
                pool.give_back(exchange, context)
            if not self._may_retry(reply.status, attempt):
                return Answer(reply.status, reply.headers, _plain(reply.headers, body, request.path))
            attempt += 1

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[HttpStream]:
        attempt = 1
        while True:
            pool, context, data = await self._prepare(request)
            exchange = await self._take(pool, context)
            reply = exchange.request(data, request.read_buffer, request.gather_seconds)
            try:
                try:
                    await _send_rest(exchange, request, deadline)
                    await reply.head(deadline)
                except Broken as error:
                    if _was_stale(request, exchange, reply):
                        continue
                    raise _broke(request.path, error) from error
                except TimeoutError as error:
                    raise UnknownOutcome(f"{request.path}: no answer within {deadline:.0f} s") from error
                if not self._may_retry(reply.status, attempt):
                    yield HttpStream(reply, request.path, deadline=deadline, idle=idle)
                    return
                attempt += 1
            finally:
                pool.give_back(exchange, context)

    @asynccontextmanager
    async def websocket(
        self, request: Request, protocols: Sequence[str], *, deadline: float
    ) -> AsyncIterator[tuple[WebSocket, str]]:
        """A WebSocket, and which of the protocols it speaks. Raises the server's error if it switches to none."""
        attempt = 1
        while True:
            pool, context, data = await self._prepare(request)
            fields = request_fields(protocols)
            head = data.removesuffix(b"\r\n") + "".join(f"{n}: {v}\r\n" for n, v in fields.items()).encode() + b"\r\n"
            exchange = await self._connect(pool.connect, context)
            try:
                reply = exchange.request(head)
                with _translated(request.path):
                    await reply.head(deadline)
                    body = await reply.body(deadline) if exchange.duplex is None else b""
                if exchange.duplex is not None:
                    yield WebSocket(exchange.duplex, is_client=True), check_reply(fields, reply.headers)
                    return
                if not self._may_retry(reply.status, attempt):
                    raise error_of_answer(reply.status, reply.headers, body)
                attempt += 1
            except BadHandshake as error:
                raise UnknownOutcome(f"{request.path}: {error}") from error
            finally:
                exchange.close()

    def _may_retry(self, status: int, attempt: int) -> bool:
        """A 401 was not carried out, so one repeat with a fresh credential is safe."""
        return status == 401 and attempt == 1 and self._connection.credentials.forget()

    async def _take(self, pool: Pool, context: ssl.SSLContext | None) -> Exchange:
        return await self._connect(pool.take, context)

    async def _connect(
        self, connect: Callable[[ssl.SSLContext | None], Awaitable[Exchange]], context: ssl.SSLContext | None
    ) -> Exchange:
        try:
            return await connect(context)
        except TimeoutError as error:
            raise Unreachable(f"cannot connect to {self._server.netloc}: no answer in time") from error
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; a name that is none is a ValueError
            raise Unreachable(f"cannot connect to {self._server.netloc}: {error or type(error).__name__}") from error

    async def _prepare(self, request: Request) -> tuple[Pool, ssl.SSLContext | None, bytes]:
        if self._pool is None:
            raise RuntimeError("the transport is not open: use it in an `async with` block")
        credential = await self._connection.credentials.current()
        if credential.authorization and not self._server.is_tls and self._server.host not in LOOPBACK:
            raise ConfigError(
                f"server {self._connection.server}: a token is not sent over http, where anybody can read it; use https"
            )
        return self._pool, self._context(credential), self._bytes(request, credential)

    def _bytes(self, request: Request, credential: Credential) -> bytes:
        """The request as it is sent, without a body that is too large to be sent at once."""
        target = request.target
        fields = f"{self._fixed}Accept: {request.accept}\r\n"
        if credential.authorization:
            fields += f"Authorization: {credential.authorization}\r\n"
        body = request.body
        if body is not None:
            fields += f"Content-Type: {request.content_type}\r\n"
        if body is not None or request.is_write:
            fields += f"Content-Length: {len(body or b'')}\r\n"
        dynamic = f"{request.method}{target}{request.accept}{request.content_type}{credential.authorization}"
        if "\r" in dynamic or "\n" in dynamic or not dynamic.isascii():
            raise RequestError(f"{request.path}: a header may only contain printable ASCII")
        head = f"{request.method} {self._prefix}{target} HTTP/1.1\r\n{fields}\r\n"
        return head.encode("latin-1") + (b"" if body is None or _is_large(request) else body)

    def _context(self, credential: Credential) -> ssl.SSLContext | None:
        if not self._server.is_tls:
            return None
        identity = (credential.certificate, credential.key)
        if identity not in self._tls:
            self._tls.clear()  # a renewed certificate replaces the old one
            self._tls[identity] = client_context(
                ca=self._connection.ca,
                insecure=self._connection.insecure_skip_tls_verify,
                certificate=credential.certificate,
                key=credential.key,
            )
        return self._tls[identity]


def _is_large(request: Request) -> bool:
    return request.body is not None and len(request.body) > PIECE


async def _send_rest(exchange: Exchange, request: Request, seconds: float) -> None:
    if _is_large(request) and request.body is not None:
        async with asyncio.timeout(seconds):
            await exchange.go_on(request.body)


def _was_stale(request: Request, exchange: Exchange, reply: Reply) -> bool:
    """A kept connection ended before anything came back, and asking once more does no harm."""
    return exchange.is_used and not reply.is_begun and not request.is_write


def _broke(where: str, error: Exception) -> UnknownOutcome:
    return UnknownOutcome(f"{where}: the connection broke: {error or type(error).__name__}")


def _plain(headers: Headers, body: bytes, where: str) -> bytes:
    """The body as it was before a proxy compressed it unasked."""
    if headers.get("Content-Encoding", "identity").lower() != "gzip":
        return body
    import gzip  # hardly ever needed
    import zlib

    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error) as error:
        raise UnknownOutcome(f"{where}: the answer cannot be decompressed: {error}") from error


class _translated:
    """Turns what can end a stream into our error tree."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TimeoutError):
            raise UnknownOutcome(f"{self._where}: no answer within the deadline") from error
        if isinstance(error, ConnectionError):
            raise _broke(self._where, error) from error
