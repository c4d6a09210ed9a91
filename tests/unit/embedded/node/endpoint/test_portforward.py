"""Bytes of a forwarded connection, between a client and a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from trainwright.embedded.node.endpoint.portforward import Pod, forward

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Side:
    """A client that has said everything already."""

    def __init__(self, *said: bytes, has_left: bool = False) -> None:
        self.said = list(said)
        self.has_left = has_left
        self.heard = b""
        self.is_closed = False

    async def read(self) -> bytes:
        return self.said.pop(0) if self.said else b""

    async def write(self, data: bytes) -> None:
        self.heard += data

    async def close(self) -> None:
        self.is_closed = True


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_client_that_has_said_all_hears_the_whole_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = await reader.read()  # to the end
        writer.write(question.upper() * 100_000)
        await writer.drain()
        writer.close()

    async with serving(serve) as port:
        side = Side(b"hello ", b"there")
        await forward(side, *await Pod("p", "uid", "p", "127.64.0.1", {}).connect(port))
    assert side.heard == b"HELLO THERE" * 100_000
    assert side.is_closed


async def test_a_client_that_has_left_keeps_no_connection_open() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:  # a server that would go on for ever
                writer.write(bytes(1000))
                await writer.drain()
                await asyncio.sleep(0.001)
        except ConnectionError:
            ended.set()

    async with serving(serve) as port, asyncio.timeout(5):
        await forward(Side(has_left=True), *await Pod("p", "uid", "p", "127.0.0.1", {}).connect(port))
        await ended.wait()


async def test_the_port_that_the_node_gave_the_job_stands_for_the_one_it_named() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        writer.close()

    async with serving(serve) as port:
        side = Side()
        await forward(side, *await Pod("p", "uid", "p", "127.0.0.1", {"29500": port}).connect(29500))
    assert side.heard == b"here"
