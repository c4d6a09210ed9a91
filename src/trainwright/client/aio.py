"""The transport over the network: HTTP/1.1 by aiohttp.

Bare aiohttp costs a quarter of the CPU of any packaged client. `readline()` needs a raised limit, since one line of a
watch may be larger than 128 KiB.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from trainwright.client.credentials import Credential
from trainwright.client.errors import ConfigError, UnknownOutcome, Unreachable
from trainwright.client.kubeconfig import Connection
from trainwright.client.requests import Request
from trainwright.client.tls import client_context
from trainwright.client.transport import Answer
from trainwright.version import __version__

READ_BUFFER = 4 * 2**20  # a line may be twice this long
CONNECT_SECONDS = 10.0
USER_AGENT = f"trainwright/{__version__}"

# Raised before the request line is sent: the server cannot have acted.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.ConnectionTimeoutError)


class HttpStream:
    """An answer of aiohttp whose body is still being received."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        with _translated(self._response.url):
            return await self._response.read()

    async def lines(self) -> AsyncIterator[bytes]:
        with _translated(self._response.url):
            while line := await self._response.content.readline():
                if stripped := line.rstrip(b"\r\n"):
                    yield stripped

    async def chunks(self) -> AsyncIterator[bytes]:
        with _translated(self._response.url):
            async for chunk in self._response.content.iter_any():
                yield chunk


class HttpTransport:
    """Sends requests to one server. `async with`, or `open()` and `close()`."""

    def __init__(self, connection: Connection, *, user_agent: str = USER_AGENT) -> None:
        if connection.proxy_url and not connection.proxy_url.startswith(("http://", "https://")):
            raise ConfigError(f"proxy-url {connection.proxy_url!r}: only http and https proxies are supported")
        self._connection = connection
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._tls: dict[tuple[bytes | None, bytes | None], ssl.SSLContext] = {}

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            read_bufsize=READ_BUFFER,
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=0),
            headers={"User-Agent": self._user_agent},
            auto_decompress=True,
            skip_auto_headers=("Content-Type",),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, request: Request, *, deadline: float) -> Answer:
        timeout = aiohttp.ClientTimeout(total=deadline, sock_connect=min(deadline, CONNECT_SECONDS))
        with _translated(request.path):
            for attempt in (1, 2):
                response = await self._request(request, timeout)
                async with response:
                    body = await response.read()
                if not self._may_retry(response.status, attempt):
                    return Answer(response.status, response.headers, body)
        raise AssertionError("unreachable")  # the second attempt returns

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[HttpStream]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=min(deadline, CONNECT_SECONDS), sock_read=idle)
        for attempt in (1, 2):
            with _translated(request.path):
                try:
                    async with asyncio.timeout(deadline):
                        response = await self._request(request, timeout)
                except TimeoutError as error:
                    raise UnknownOutcome(f"{request.path}: no answer within {deadline:.0f} s") from error
            async with response:
                if self._may_retry(response.status, attempt):
                    continue
                yield HttpStream(response)
                return

    def _may_retry(self, status: int, attempt: int) -> bool:
        """A 401 was not carried out, so one repeat with a fresh credential is safe."""
        return status == 401 and attempt == 1 and self._connection.credentials.forget()

    async def _request(self, request: Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the transport is not open: use it in an `async with` block")
        credential = await self._connection.credentials.current()
        headers = {"Accept": request.accept}
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method,
            URL(self._connection.server + request.target, encoded=True),
            data=request.body,
            headers=headers,
            timeout=limits,
            ssl=self._context(credential),
            server_hostname=self._connection.tls_server_name,
            proxy=self._connection.proxy_url,
            allow_redirects=False,
        )

    def _context(self, credential: Credential) -> ssl.SSLContext | bool:
        if self._connection.server.startswith("http://"):
            return True
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


class _translated:
    """Turns aiohttp's exceptions into our error tree."""

    def __init__(self, where: object) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _NOT_SENT):
            raise Unreachable(f"cannot connect: {error}") from error
        if isinstance(error, TimeoutError):
            raise UnknownOutcome(f"{self._where}: no answer within the deadline") from error
        if isinstance(error, (aiohttp.ClientError, ConnectionError, ValueError)) and not isinstance(error, ConfigError):
            # ValueError: aiohttp's LineTooLong, for a line over twice READ_BUFFER.
            raise UnknownOutcome(f"{self._where}: the connection broke: {error or type(error).__name__}") from error
