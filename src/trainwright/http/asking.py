"""Single requests to servers that are named by URLs, over connections that are kept for the next one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from trainwright.http.duplex import Duplex
from trainwright.http.exchange import Broken, Exchange, Reply
from trainwright.http.pool import Address, Pool

_SAFE = "/:?#[]@!$&'()*+,;=%~"
"""What may stand in a request's target as it is; everything else is percent-encoded."""


class Asker:
    """`close()` at the end."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str | None, ssl.SSLContext | None], Pool] = {}

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    async def ask(
        self,
        method: str,
        url: str,
        fields: Mapping[str, str],
        body: bytes | None = None,
        *,
        context: ssl.SSLContext | None,
        server_name: str | None = None,
        seconds: float,
    ) -> Asked:
        """A reply whose head has come within so many seconds. To be used only for what may be asked twice.

        Raises `BadAddress`, `OSError` (no connection; `Broken`: it ended) and `TimeoutError`.
        """
        address = Address(url, "URL")
        context = context if address.is_tls else None
        pool = self._pool(address, server_name, context)
        data = _bytes(method, url, address, fields, body)
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            async with asyncio.timeout_at(end):
                exchange = await pool.take(context)
            was_kept = exchange.is_used
            asked = Asked(exchange, exchange.request(data), pool, context)
            try:
                await asked.reply.head(end - loop.time())
            except BaseException as error:
                asked.release()
                if isinstance(error, Broken) and was_kept and not asked.reply.is_begun:
                    continue  # it was closed while it was kept
                raise
            return asked

    async def switch(
        self, method: str, url: str, fields: Mapping[str, str], *, context: ssl.SSLContext | None, seconds: float
    ) -> Asked:
        """A reply to a request for another protocol, over a connection of its own. If its status is 101, `duplex` is
        that connection. Raises as `ask` does.
        """
        address = Address(url, "URL")
        context = context if address.is_tls else None
        pool = self._pool(address, None, context)
        async with asyncio.timeout(seconds):
            exchange = await pool.connect(context)
            asked = Asked(exchange, exchange.request(_bytes(method, url, address, fields, None)), pool, context)
            try:
                await asked.reply.head(seconds)
            except BaseException:
                asked.release()
                raise
        return asked

    def _pool(self, address: Address, server_name: str | None, context: ssl.SSLContext | None) -> Pool:
        key = (address.netloc, server_name, context)
        if key not in self._pools:
            self._pools[key] = Pool(address, None, server_name)
        return self._pools[key]


class Asked:
    """A reply, and the connection it comes over. `with` it, or `release()` at the end."""

    def __init__(self, exchange: Exchange, reply: Reply, pool: Pool, context: ssl.SSLContext | None) -> None:
        self.reply = reply
        self._exchange: Exchange | None = exchange
        self._pool = pool
        self._context = context

    @property
    def duplex(self) -> Duplex | None:
        return self._exchange.duplex if self._exchange is not None else None

    def release(self) -> None:
        """The connection is kept if the reply has been read to its end; one that speaks another protocol ends."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None and exchange.duplex is not None:
            exchange.close()
        elif exchange is not None:
            self._pool.give_back(exchange, self._context)

    def __enter__(self) -> Reply:
        return self.reply

    def __exit__(self, *_: object) -> None:
        self.release()


def _bytes(method: str, url: str, address: Address, fields: Mapping[str, str], body: bytes | None) -> bytes:
    parts = urlsplit(url)
    target = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {address.name}", "User-Agent: trainwright"]
    if address.authorization:
        lines.append(f"Authorization: {address.authorization}")
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")
