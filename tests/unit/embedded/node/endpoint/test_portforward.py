"""Bytes of a forwarded connection, between a client and a real server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from trainwright.embedded.node.endpoint.portforward import Idleness, Pod, forward

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


def pod(address: str, ports: dict[str, int], supervisor: int | None = None) -> Pod:
    """A pod whose processes are this one and its children, or those of another supervisor."""
    return Pod("p", "uid", "p", address, ports, supervisor or os.getpid())


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
        await forward(side, *await pod("127.64.0.1", {}).connect(port), Idleness())
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
        await forward(Side(has_left=True), *await pod("127.0.0.1", {}).connect(port), Idleness())
        await ended.wait()


async def test_the_port_that_the_node_gave_the_job_stands_for_the_one_it_named() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        writer.close()

    async with serving(serve) as port:
        side = Side()
        await forward(side, *await pod("127.0.0.1", {"29500": port}).connect(29500), Idleness())
    assert side.heard == b"here"


async def test_a_port_that_another_pod_listens_on_is_not_reached() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"a secret of this pod")
        writer.close()

    with subprocess.Popen(["sleep", "60"]) as another:
        try:
            async with serving(serve) as port:
                for address in ("127.0.0.1", "127.64.0.1"):
                    with pytest.raises(OSError, match="no process of the pod listens on it"):
                        await pod(address, {}, another.pid).connect(port)
                _, writer = await pod("127.64.0.1", {}).connect(port)
                writer.close()
        finally:
            another.kill()


@pytest.mark.parametrize("where", ["127.0.0.1", "", "127.64.0.9"])
async def test_a_process_of_the_pod_is_reached_wherever_it_listens(where: str) -> None:
    program = f"""
import socket
server = socket.create_server(({where!r}, 0))
print(server.getsockname()[1], flush=True)
server.accept()[0].sendall(b"it is me")
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        reader, writer = await pod("127.64.0.9", {}).connect(port)
        assert await reader.read() == b"it is me"
        writer.close()


async def test_a_connection_over_which_nothing_goes_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await reader.read()
        writer.close()

    class Silent(Side):
        async def read(self) -> bytes:
            await asyncio.sleep(3600)
            return b""

    side = Silent()
    async with serving(serve) as port, asyncio.timeout(5):
        await forward(side, *await pod("127.0.0.1", {}).connect(port), Idleness(0.2))
    assert side.heard == b"hello"
