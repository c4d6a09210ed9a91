"""Single requests by URL: connections that are kept, and one that the server closed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from trainwright.http import server as http
from trainwright.http.asking import Asker
from trainwright.http.exchange import Broken
from trainwright.http.pool import BadAddress
from trainwright.http.request import Request
from trainwright.http.response import Response

SECONDS = 10.0


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    asker = Asker()
    yield asker
    asker.close()


async def test_the_next_request_uses_the_connection_of_the_last(asker: Asker) -> None:
    async def answer(request: Request) -> Response:
        return Response(body=f"{request.method} {request.target} {request.headers['X']}".encode())

    async with http.Server(answer, ("127.0.0.1", 0)) as server:
        for _ in range(3):
            url = f"http://127.0.0.1:{server.port}/a b?c=ü"
            with await asker.ask("POST", url, {"X": "y"}, b"{}", context=None, seconds=SECONDS) as reply:
                assert await reply.body(SECONDS) == b"POST /a%20b?c=%C3%BC y"
        assert len(server.connections.open) == 1


class Closing:
    """Answers one request on each connection, closes it without having said so, and counts."""

    def __init__(self, *, answers: bool) -> None:
        self.connections = 0
        self._answers = answers

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await reader.readuntil(b"\r\n\r\n")
        if self._answers:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await reader.readuntil(b"\r\n\r\n")  # the next one, which finds the connection closed
        writer.close()


async def test_a_kept_connection_that_was_closed_is_replaced(asker: Asker) -> None:
    closing = Closing(answers=True)
    async with await asyncio.start_server(closing, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(2):
            with await asker.ask("POST", url, {}, b"", context=None, seconds=SECONDS) as reply:
                assert await reply.body(SECONDS) == b"ok"
        assert closing.connections == 2


async def test_a_new_connection_that_is_closed_is_an_error(asker: Asker) -> None:
    closing = Closing(answers=False)
    async with await asyncio.start_server(closing, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(Broken):
            await asker.ask("POST", url, {}, b"", context=None, seconds=SECONDS)
        assert closing.connections == 1


async def test_an_answer_is_read_no_further_than_wanted(asker: Asker) -> None:
    async def answer(request: Request) -> Response:
        return Response(body=b"x" * 2**20)

    async with http.Server(answer, ("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        with await asker.ask("GET", url, {}, context=None, seconds=SECONDS) as reply:
            assert await reply.some(10, SECONDS) == b"x" * 10


@pytest.mark.parametrize("url", ["ftp://x/", "https://", "https://x:port/"])
async def test_a_url_that_leads_nowhere(asker: Asker, url: str) -> None:
    with pytest.raises(BadAddress):
        await asker.ask("GET", url, {}, context=None, seconds=SECONDS)
