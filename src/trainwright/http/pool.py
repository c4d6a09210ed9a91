"""Connections to one server: opened when they are needed, through a proxy where there is one, and kept for a while."""

from __future__ import annotations

import asyncio
import base64
import ssl
from urllib.parse import unquote, urlsplit

from trainwright.http.exchange import Broken, Exchange

KEEP_SECONDS = 15.0
"""A connection that has not been used for longer is closed: a server that closes it first costs a lost request."""
CONNECT_SECONDS = 10.0


class BadAddress(ValueError):
    """A URL that leads nowhere; the message names it."""


class Address:
    """Where a URL leads: `https://host:port/prefix`."""

    def __init__(self, url: str, what: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError as error:
            raise BadAddress(f"{what} {url!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadAddress(f"{what} {url!r}: write http://HOST:PORT or https://HOST:PORT")
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = port or (443 if self.is_tls else 80)
        self.prefix = parts.path.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.netloc = f"{host}:{self.port}"
        """With the port, as CONNECT wants it."""
        self.name = self.netloc if port else host
        """As the Host header has it."""
        self.authorization = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"


class Pool:
    """`close()` ends the connections that nobody uses at the moment, and all others as soon as they are given back."""

    def __init__(self, server: Address, proxy: Address | None, server_name: str | None) -> None:
        self._server = server
        self._proxy = proxy
        self._server_name = server_name or server.host
        self._idle: list[tuple[float, Exchange]] = []  # the one that was used last comes last
        self._context: ssl.SSLContext | None = None  # of all that are idle
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def take(self, context: ssl.SSLContext | None) -> Exchange:
        """A connection for one request: one that is kept, or a new one."""
        if context is not self._context:
            self._drop()  # a renewed certificate: connections of the old one are somebody else's
            self._context = context
        while self._idle:
            since, exchange = self._idle.pop()
            if exchange.is_open and asyncio.get_running_loop().time() - since < KEEP_SECONDS:
                return exchange
            exchange.close()
        return await self.connect(context)

    def give_back(self, exchange: Exchange, context: ssl.SSLContext | None) -> None:
        if not exchange.settle() or self._closed or context is not self._context:
            exchange.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((loop.time(), exchange))
        if self._sweeping is None:
            self._sweeping = loop.call_later(KEEP_SECONDS, self._sweep)

    def close(self) -> None:
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        while self._idle:
            self._idle.pop()[1].close()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        kept = []
        for since, exchange in self._idle:
            if exchange.is_open and loop.time() - since < KEEP_SECONDS:
                kept.append((since, exchange))
            else:
                exchange.close()
        self._idle = kept
        self._sweeping = loop.call_later(KEEP_SECONDS, self._sweep) if kept else None

    async def connect(self, context: ssl.SSLContext | None) -> Exchange:
        """A new connection; `OSError`, `ssl.SSLError` or `TimeoutError` when there is none within the time."""
        async with asyncio.timeout(CONNECT_SECONDS):
            if self._proxy is not None and context is not None:
                return await self._tunnel(self._proxy, context)
            if self._proxy is not None:
                return await _open(self._proxy, ssl.create_default_context() if self._proxy.is_tls else None)
            return await _open(self._server, context, self._server_name)

    async def _tunnel(self, proxy: Address, context: ssl.SSLContext) -> Exchange:
        outer = await _open(proxy, ssl.create_default_context() if proxy.is_tls else None)
        try:
            there = self._server.netloc
            lines = [f"CONNECT {there} HTTP/1.1", f"Host: {there}"]
            if proxy.authorization:
                lines.append(f"Proxy-Authorization: {proxy.authorization}")
            reply = outer.request("\r\n".join([*lines, "", ""]).encode("latin-1"))
            await reply.head(CONNECT_SECONDS)
            if reply.status != 200:
                raise Broken(f"the proxy {proxy.netloc} answers {reply.status} to CONNECT")
            inner = Exchange()
            transport = await asyncio.get_running_loop().start_tls(
                outer.transport, inner, context, server_hostname=self._server_name
            )
            if transport is None:
                raise Broken(f"the proxy {proxy.netloc} closed the connection")
            inner.connection_made(transport)
        except BaseException:
            outer.close()
            raise
        return inner


async def _open(address: Address, context: ssl.SSLContext | None, name: str | None = None) -> Exchange:
    _, exchange = await asyncio.get_running_loop().create_connection(
        Exchange,
        address.host,
        address.port,
        ssl=context,
        server_hostname=(name or address.host) if context is not None else None,
    )
    return exchange
