"""The HTTP server, spoken to byte by byte: what it answers, and what it does not put up with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trainwright.http import connection
from trainwright.http import request as incoming
from trainwright.http.application import Application, Request
from trainwright.http.response import ConnectionSink, Response, StreamedResponse, text
from trainwright.http.server import Server


class Scene:
    """What the server of a test answers, and what it saw. `/wait` answers when it is told to."""

    STREAMED = 4 * 2**20

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.large_answers = 0
        self.most_unread = 0
        self.abandoned = 0
        self.server: Server | None = None
        self.app = Application(
            {
                "/echo": {"POST": self.echo, "GET": self.echo},
                "/headers": {"POST": self.headers},
                "/wait": {"GET": self.wait},
                "/fail": {"GET": self.fail},
                "/large": {"GET": self.large},
            },
            largest_body=100,
        )

    async def answer(self, request: incoming.Request) -> Response | StreamedResponse:
        if request.path == "/stream":
            return StreamedResponse(self.stream, abandon=self.abandon)
        if request.path == "/breaks":
            return StreamedResponse(self.break_off)
        if request.path == "/split":
            return Response(fields=[("X-Name", "a\r\nSet-Cookie: b\nSet-Cookie: c")])
        return await self.app(request)

    async def echo(self, request: Request) -> Response:
        return text("too large", 413) if request.is_too_large else Response(body=request.body)

    async def headers(self, request: Request) -> Response:
        return text(", ".join(request.headers))

    async def wait(self, request: Request) -> Response:
        self.reached.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return text("waited")

    async def fail(self, request: Request) -> Response:
        raise RuntimeError("a fault of ours")

    async def large(self, request: Request) -> Response:
        self.large_answers += 1
        return Response(body=b"x" * 2**20)

    async def stream(self, sink: ConnectionSink) -> None:
        for _ in range(self.STREAMED // 2**16):
            await sink.send(b"x" * 2**16)
            await sink.send(b"")  # ends nothing
            self.most_unread = max(self.most_unread, sink.unread() + 1)

    def abandon(self) -> None:
        self.abandoned += 1

    async def break_off(self, sink: ConnectionSink) -> None:
        await sink.send(b"begun")
        raise RuntimeError("a fault of ours")

    async def server_lost_it(self) -> None:
        """Returns when the server has no connection left."""
        assert self.server is not None
        await self.server.connections.emptied(60)


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self, *, has_body: bool = True) -> tuple[int, bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        body = await self._reader.readexactly(int(fields["Content-Length"])) if has_body else b""
        return int(head.split(" ")[1]), body

    async def line(self) -> bytes:
        line = await self._reader.readline()
        await self._reader.readline()
        return line

    async def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        try:
            async with asyncio.timeout(10):
                return await self._reader.read()
        except ConnectionError:
            return b""

    async def chunks(self) -> bytes:
        """A chunked body to its end."""
        await self._reader.readuntil(b"\r\n\r\n")
        found = []
        while size := int((await self._reader.readline()).strip(), 16):
            found.append((await self._reader.readexactly(size + 2))[:-2])
        assert await self._reader.readline() == b"\r\n"
        return b"".join(found)

    def is_over(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing() or self._reader.exception() is not None

    async def drained(self) -> None:
        """What was sent has left, or the server has."""
        try:
            await self._writer.drain()
            await asyncio.sleep(0)
        except ConnectionError:
            self._writer.close()

    def end(self) -> None:
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def scene() -> Scene:
    return Scene()


@asynccontextmanager
async def calling(scene: Scene) -> AsyncIterator[Caller]:
    async with Server(scene.answer, ("127.0.0.1", 0)) as server:
        scene.server = server
        caller = Caller(*await asyncio.open_connection("127.0.0.1", server.port))
        try:
            yield caller
        finally:
            caller.close()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def post(body: bytes) -> bytes:
    return b"POST /echo?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def test_requests_on_one_connection_are_answered_in_their_order(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(post(b"one") + post(b"two") + get("/wait") + post(b"three"))
        assert [await caller.answer() for _ in range(2)] == [(200, b"one"), (200, b"two")]
        await scene.reached.wait()
        scene.go_on.set()
        assert [await caller.answer() for _ in range(2)] == [(200, b"waited"), (200, b"three")]
        caller.send(post(b"four"))
        assert await caller.answer() == (200, b"four")


async def test_a_path_or_a_method_that_there_is_not(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(get("/nothing") + b"DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [(await caller.answer())[0] for _ in range(2)] == [404, 405]


async def test_head_is_answered_without_the_body(scene: Scene) -> None:
    scene.go_on.set()
    async with calling(scene) as caller:
        caller.send(b"HEAD /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert await caller.answer(has_body=False) == (200, b"")
        assert await caller.rest() == b""


async def test_a_fault_of_ours_is_a_500_and_the_connection_goes_on(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(get("/fail") + post(b"next"))
        assert await caller.answer() == (500, b"500: Internal Server Error")
        assert await caller.answer() == (200, b"next")


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n")
        assert await caller.answer() == (413, b"too large")


async def test_a_body_that_turns_out_too_large_is_refused_and_the_sender_can_read_why(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            caller.send(b"32\r\n" + b"x" * 50 + b"\r\n")
        assert await caller.answer() == (413, b"too large")
        caller.send(b"0\r\n\r\n")
        assert await caller.rest() == b""


async def test_who_asks_first_is_told_to_go_on(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert await caller.line() == b"HTTP/1.1 100 Continue\r\n"
        caller.send(b"ok")
        assert await caller.answer() == (200, b"ok")


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /echo\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nokok",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\nok",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\nok",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nok",
        b"GET /echo HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /echo HTTP/1.1\nHost: x\n\n",
        b"GET /echo HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        b"GET /echo HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 300 + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_is_no_request_ends_the_connection(scene: Scene, data: bytes) -> None:
    async with calling(scene) as caller:
        caller.send(data)
        assert not (await caller.rest()).startswith(b"HTTP/1.1 2")


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /echo HTTP/1.1\r\nX: ",
        b"GET /",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
    ],
)
async def test_a_line_that_never_ends_is_not_kept(scene: Scene, begin: bytes) -> None:
    async with calling(scene) as caller:
        caller.send(begin)
        sent = 0
        while sent < 100 * connection.LARGEST_HEAD and not caller.is_over():
            caller.send(b"x" * 16_384)
            await caller.drained()
            sent += 16_384
        assert sent < 20 * connection.LARGEST_HEAD
        assert not (await caller.rest()).startswith(b"HTTP/1.1 2")


async def test_what_follows_a_body_adds_no_header(scene: Scene) -> None:
    async with calling(scene) as caller:
        chunks = b"2\r\nok\r\n0\r\nAuthorization: Bearer stolen\r\n\r\n"
        caller.send(b"POST /headers HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
        assert await caller.answer() == (200, b"Host, Transfer-Encoding")


async def test_a_request_in_the_body_of_another_is_a_body(scene: Scene) -> None:
    async with calling(scene) as caller:
        inner = get("/fail")
        caller.send(post(inner) + post(b"next"))
        assert [await caller.answer() for _ in range(2)] == [(200, inner), (200, b"next")]


async def test_a_body_that_comes_too_slowly_is_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.05)
    async with calling(scene) as caller:
        caller.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\no")
        assert await caller.answer() == (408, b"408: Request Timeout")


async def test_who_sends_on_after_a_refusal_is_cut_off(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.05)
    async with calling(scene) as caller:
        caller.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        assert await caller.answer() == (413, b"too large")
        assert await caller.rest() == b""


async def test_when_the_client_leaves_its_answer_is_no_longer_made(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(get("/wait"))
        await scene.reached.wait()
        caller.close()
        await asyncio.wait_for(scene.cancelled.wait(), 10)


async def test_a_client_that_closes_its_side_only_has_left(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(get("/wait"))
        await scene.reached.wait()
        caller.end()
        await asyncio.wait_for(scene.cancelled.wait(), 10)
        assert await caller.rest() == b""


async def test_a_client_that_reads_nothing_is_answered_no_further(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.3)
    async with calling(scene) as caller:
        for _ in range(200):
            caller.send(get("/large"))
        await asyncio.wait_for(scene.server_lost_it(), 10)
        assert 0 < scene.large_answers < 100


async def test_a_stream_waits_for_its_reader_and_ends_as_a_whole(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(get("/stream") + post(b"next"))
        assert await caller.chunks() == b"x" * scene.STREAMED
        assert scene.most_unread < 2**20
        assert await caller.answer() == (200, b"next")


async def test_a_client_of_http_1_0_reads_a_stream_to_the_end_of_its_connection(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        head, _, body = (await caller.rest()).partition(b"\r\n\r\n")
        assert b"Transfer-Encoding" not in head
        assert body == b"x" * scene.STREAMED


async def test_head_of_a_stream_does_not_begin_it(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await caller.rest()).endswith(b"\r\n\r\n")
        assert scene.abandoned == 1
        assert scene.most_unread == 0


async def test_a_stream_that_breaks_off_is_no_whole_answer(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(get("/breaks"))
        assert not (await caller.rest()).endswith(b"0\r\n\r\n")


async def test_a_header_of_an_answer_cannot_begin_another_one(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"GET /split HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"\r\nSet-Cookie" not in await caller.rest()


async def test_who_wants_another_protocol_is_answered_in_this_one_and_no_more(scene: Scene) -> None:
    async with calling(scene) as caller:
        caller.send(b"GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nmore")
        assert await caller.answer() == (200, b"")
        assert await caller.rest() == b""


async def test_a_request_that_comes_too_slowly_ends_the_connection(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.05)
    async with calling(scene) as caller:
        caller.send(b"GET /echo HTT")
        assert await caller.rest() == b""


async def test_a_connection_that_nobody_uses_is_closed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.05)
    async with calling(scene) as caller:
        caller.send(post(b"once"))
        assert await caller.answer() == (200, b"once")
        assert await caller.rest() == b""


async def test_an_answer_that_is_being_made_is_given_before_the_server_ends(scene: Scene) -> None:
    server = Server(scene.app, ("127.0.0.1", 0))
    await server.__aenter__()
    caller = Caller(*await asyncio.open_connection("127.0.0.1", server.port))
    caller.send(get("/wait"))
    await scene.reached.wait()
    ending = asyncio.ensure_future(server.__aexit__(None, None, None))
    asyncio.get_running_loop().call_soon(scene.go_on.set)
    assert await caller.answer() == (200, b"waited")
    await ending
    assert await caller.rest() == b""
    caller.close()
