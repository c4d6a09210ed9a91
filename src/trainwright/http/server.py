"""A listening socket and its connections, for as long as an `async with` block runs."""

from __future__ import annotations

import asyncio
import socket
import ssl
from types import TracebackType
from typing import Self

from trainwright.http.connection import Answer, Connection
from trainwright.http.limits import Budget, Connections

BACKLOG = 1024
HANDSHAKE_SECONDS = 10.0
FLUSH_SECONDS = 0.5
"""At the end, for clients to take what has been written and to close."""


class Server:
    """`where` is a socket that is bound already, and the server's from then on, or a host and a port.

    Without a host it listens on all interfaces, with port 0 on a free one. At the end, answers that are being made
    have `shutdown_seconds` to be finished.
    """

    def __init__(
        self,
        answer: Answer,
        where: socket.socket | tuple[str, int],
        tls: ssl.SSLContext | None = None,
        *,
        shutdown_seconds: float = 5.0,
    ) -> None:
        self._answer = answer
        self._where = where
        self._context = tls
        self._shutdown_seconds = shutdown_seconds
        self.connections: Connections[Connection] = Connections()
        self._budget = Budget()
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        handshake = HANDSHAKE_SECONDS if self._context is not None else None
        if isinstance(self._where, socket.socket):
            self._listener = await loop.create_server(
                self._connection,
                sock=self._where,
                ssl=self._context,
                ssl_handshake_timeout=handshake,
                backlog=BACKLOG,
            )
        else:
            host, port = self._where
            self._listener = await loop.create_server(
                self._connection,
                host or None,
                port,
                ssl=self._context,
                ssl_handshake_timeout=handshake,
                backlog=BACKLOG,
                reuse_address=True,
            )
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.close()
        for connection in list(self.connections.open):
            connection.close()
        if working := [connection.working for connection in self.connections.open if connection.working is not None]:
            await asyncio.wait(working, timeout=self._shutdown_seconds)
        for connection in list(self.connections.open):
            if connection.working is not None:
                connection.abort()
        await self.connections.emptied(FLUSH_SECONDS)
        for connection in list(self.connections.open):
            connection.abort()

    def _connection(self) -> Connection:
        return Connection(self._answer, self.connections, self._budget)
