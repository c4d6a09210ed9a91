"""Our WebSockets against aiohttp's, and against clients that break the protocol."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from trainwright.http import websocket
from trainwright.http.asking import Asker
from trainwright.http.duplex import Duplex
from trainwright.http.request import Request
from trainwright.http.response import Response, UpgradedResponse, text
from trainwright.http.server import Server
from trainwright.http.websocket import LARGEST_MESSAGE, WebSocket

Speak = Callable[[WebSocket], Awaitable[None]]


async def echo(socket: WebSocket) -> None:
    while (message := await socket.receive()) is not None:
        await socket.send(message)


@asynccontextmanager
async def serving(speak: Speak) -> AsyncIterator[int]:
    async def answer(request: Request) -> Response | UpgradedResponse:
        if not websocket.is_asked_for(request.headers):
            return text("not asked for", 400)
        try:
            _, fields = websocket.accept(request.headers, ["two", "one"])
        except websocket.BadHandshake as error:
            return text(str(error), 400)

        async def serve(duplex: Duplex) -> None:
            await speak(WebSocket(duplex, is_client=False))

        return UpgradedResponse(serve, fields)

    async with Server(answer, ("127.0.0.1", 0)) as server:
        yield server.port


async def test_messages_of_every_size_come_back_from_our_server() -> None:
    async with serving(echo) as port, aiohttp.ClientSession() as session:
        async with session.ws_connect(f"http://127.0.0.1:{port}/", protocols=["zero", "one"]) as there:
            assert there.protocol == "one"
            for size in (0, 1, 125, 126, 65535, 65536, 1_000_000):
                data = os.urandom(size)
                await there.send_bytes(data)
                assert await there.receive_bytes() == data
            await there.ping(b"are you there")


async def test_our_client_speaks_with_another_server() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        there = web.WebSocketResponse(protocols=["one"])
        await there.prepare(request)
        async for message in there:
            await there.ping(b"x")
            await there.send_bytes(message.data)
        return there

    app = web.Application()
    app.router.add_get("/", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    asker = Asker()
    try:
        fields = websocket.request_fields(["one"])
        asked = await asker.switch("GET", f"http://127.0.0.1:{port}/", fields, context=None, seconds=5)
        assert asked.reply.status == 101
        assert websocket.check_reply(fields, asked.reply.headers) == "one"
        assert asked.duplex is not None
        socket = WebSocket(asked.duplex, is_client=True)
        for size in (0, 126, 300_000):
            data = os.urandom(size)
            await socket.send(data)
            assert await socket.receive() == data
        await socket.close()
        asked.release()
    finally:
        asker.close()
        await runner.cleanup()


async def test_a_request_for_another_protocol_that_is_refused_has_an_answer() -> None:
    asker = Asker()
    async with serving(echo) as port:
        fields = websocket.request_fields(["three"])
        asked = await asker.switch("GET", f"http://127.0.0.1:{port}/", fields, context=None, seconds=5)
        with asked as reply:
            assert (reply.status, asked.duplex) == (400, None)
            assert b"none of the protocols ['three']" in await reply.body(5)
    asker.close()


async def test_the_end_waits_for_a_client_that_still_sends_so_that_it_reads_everything() -> None:
    async def say_and_end(socket: WebSocket) -> None:
        await socket.send(b"last words")
        await socket.close()

    async with serving(say_and_end) as port, aiohttp.ClientSession() as session:
        async with session.ws_connect(f"http://127.0.0.1:{port}/") as there:
            for _ in range(20):
                await there.send_bytes(bytes(100_000))
            assert await there.receive_bytes() == b"last words"
            assert (await there.receive()).type is aiohttp.WSMsgType.CLOSE


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
MASK = b"\0\0\0\0"


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (b"\x82\x01a", 1002),  # not masked
        (b"\xc2\x81" + MASK + b"a", 1002),  # an extension that nobody agreed on
        (b"\x80\x81" + MASK + b"a", 1002),  # goes on with nothing
        (b"\x02\x81" + MASK + b"a" + b"\x82\x81" + MASK + b"b", 1002),  # begins before the last has ended
        (b"\x09\x80" + MASK, 1002),  # a ping in parts
        (b"\x83\x80" + MASK, 1002),  # a kind that there is not
        (b"\x82\xff" + (LARGEST_MESSAGE + 1).to_bytes(8, "big"), 1009),
    ],
)
async def test_what_breaks_the_protocol_ends_the_connection_with_its_code(frames: bytes, code: int) -> None:
    async with serving(echo) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE + frames)  # the client need not wait for the answer
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert await reader.read() == b"\x88\x02" + code.to_bytes(2, "big")
        writer.close()


async def test_parts_of_a_message_with_a_ping_between_them_are_one() -> None:
    async with serving(echo) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE)
        writer.write(b"\x02\x81" + MASK + b"a" + b"\x89\x81" + MASK + b"?" + b"\x80\x81" + MASK + b"b")
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(7) == b"\x8a\x01?" + b"\x82\x02ab"
        writer.close()


async def test_when_the_client_leaves_what_speaks_with_it_is_cancelled() -> None:
    ended = asyncio.Event()

    async def speak(socket: WebSocket) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(speak) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        async with asyncio.timeout(5):
            await ended.wait()


async def test_a_sender_waits_for_a_client_that_does_not_read() -> None:
    sent = 0

    async def speak(socket: WebSocket) -> None:
        nonlocal sent
        while True:
            await socket.send(bytes(100_000))
            sent += 1

    async with serving(speak) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(HANDSHAKE)
        before = -1
        while before != sent or sent == 0:
            before = sent
            await asyncio.sleep(0.1)
        assert sent * 100_000 < 20_000_000
        writer.transport.abort()
