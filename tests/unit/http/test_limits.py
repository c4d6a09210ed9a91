"""Nobody uses a server up: idle connections, unfinished bodies and descriptors have limits, and who asks gets in."""

from __future__ import annotations

import asyncio
import contextlib
import resource

from trainwright.http import limits
from trainwright.http.application import Application, Request
from trainwright.http.response import Response
from trainwright.http.server import Server

IDLE = 1_000
UNFINISHED = 40
REVIEW = 15 * 2**20


async def echo(request: Request) -> Response:
    return Response(body=str(len(request.body)).encode())


def server() -> Server:
    return Server(Application({"/": {"POST": echo}}, largest_body=16 * 2**20), ("127.0.0.1", 0))


async def ask(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


async def test_a_thousand_idle_connections_keep_nobody_out_and_most_of_them_are_let_go() -> None:
    limits.raise_descriptor_limit()
    async with server() as running, contextlib.AsyncExitStack() as stack:
        for _ in range(IDLE):
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            stack.callback(writer.close)
        assert (await ask(running.port)).endswith(b"\r\n\r\n5")
        assert len(running.connections.open) <= limits.MOST_IDLE + 1


async def test_a_client_that_has_asked_before_keeps_its_connection_while_mute_ones_come() -> None:
    async with server() as running, contextlib.AsyncExitStack() as stack:
        reader, ours = await asyncio.open_connection("127.0.0.1", running.port)
        stack.callback(ours.close)
        for _ in range(2):
            ours.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi")
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n2"), 10)
            for _ in range(limits.MOST_IDLE + 10):
                _, writer = await asyncio.open_connection("127.0.0.1", running.port)
                stack.callback(writer.close)


async def test_unfinished_reviews_take_no_more_than_their_budget_and_small_ones_are_answered_meanwhile() -> None:
    async with server() as running, contextlib.AsyncExitStack() as stack:
        most = 0

        async def send_all_but_the_end() -> None:
            nonlocal most
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            stack.callback(writer.close)
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % REVIEW)
            for _ in range(REVIEW // 2**20 - 1):
                writer.write(b"x" * 2**20)
                with contextlib.suppress(ConnectionError):
                    await writer.drain()
                most = max(most, running._budget.held)

        await asyncio.gather(*(send_all_but_the_end() for _ in range(UNFINISHED)))
        assert (await ask(running.port)).endswith(b"\r\n\r\n5")
        assert 2**20 < most <= limits.MOST_BODY_BYTES


async def test_a_body_that_was_read_or_whose_client_left_is_no_longer_counted() -> None:
    async with server() as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000)
        await asyncio.wait_for(reader.readuntil(b"1000000"), 10)
        assert running._budget.held == 0
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 900_000)
        while not running._budget.held:
            await asyncio.sleep(0.01)
        writer.close()
        while running.connections.open:
            await asyncio.sleep(0.01)
        assert running._budget.held == 0


def test_the_limit_on_descriptors_is_raised_as_far_as_it_goes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        assert limits.raise_descriptor_limit() == min(limits.MOST_DESCRIPTORS, hard)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(limits.MOST_DESCRIPTORS, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
