"""The HTTP of the client against servers that say what a test tells them to, byte by byte."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trainwright.client import Client, ConfigError, Connection, HttpTransport, RequestError, UnknownOutcome, Unreachable
from trainwright.client.credentials import Credential, StaticCredentials
from trainwright.client.requests import Request
from trainwright.http.exchange import PIECE, READ_BUFFER, Broken, Exchange
from trainwright.testing.certificates import Authority

GET = Request("GET", "/x")
POST = Request("POST", "/x", body=b"{}")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


class Script:
    """Each connection answers its requests with the next of its answers, and ends when it has none left."""

    def __init__(self, *connections: Sequence[bytes]) -> None:
        self._connections = iter(connections)
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in next(self._connections):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            if b"POST" in head:
                await reader.readexactly(2)
            writer.write(answer)
            await writer.drain()


@asynccontextmanager
async def transport_to(script: Serve) -> AsyncIterator[HttpTransport]:
    async with serving(script) as port:
        connection = Connection(f"http://127.0.0.1:{port}", StaticCredentials())
        async with HttpTransport(connection) as transport:
            yield transport


async def test_a_connection_is_used_again() -> None:
    script = Script([OK, OK, OK])
    async with transport_to(script) as transport:
        for _ in range(3):
            assert (await transport.send(POST, deadline=5)).body == b"ok"
    assert len(script.heads) == 3


async def test_a_read_on_a_connection_that_the_server_has_closed_is_repeated_on_a_new_one() -> None:
    script = Script([OK, b""], [OK])
    async with transport_to(script) as transport:
        await transport.send(GET, deadline=5)
        assert (await transport.send(GET, deadline=5)).body == b"ok"


async def test_a_write_on_such_a_connection_is_not_repeated() -> None:
    script = Script([OK, b""], [OK])
    async with transport_to(script) as transport:
        await transport.send(POST, deadline=5)
        with pytest.raises(UnknownOutcome, match="the server closed the connection"):
            await transport.send(POST, deadline=5)
    assert len(script.heads) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\n\r\nok",
    ],
)
async def test_half_an_answer_or_none_that_can_be_read_is_an_unknown_outcome(answer: bytes) -> None:
    async with transport_to(Script([answer])) as transport:
        with pytest.raises(UnknownOutcome):
            await transport.send(POST, deadline=5)


async def test_a_stream_that_breaks_off_says_so_after_what_had_come() -> None:
    script = Script([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na\nb\nc\n\r\n"])
    lines: list[bytes] = []

    async def read(transport: HttpTransport) -> None:
        async with transport.stream(GET, deadline=5, idle=5) as stream:
            async for line in stream.lines():
                lines.append(line)

    async with transport_to(script) as transport:
        with pytest.raises(UnknownOutcome, match="/x: the connection broke"):
            await read(transport)
    assert lines == [b"a", b"b", b"c"]


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async with transport_to(Script([b"HTTP/1.0 200 OK\r\n\r\nall of it"])) as transport:
        assert (await transport.send(GET, deadline=5)).body == b"all of it"


async def test_what_announces_an_answer_is_not_the_answer() -> None:
    async with transport_to(Script([b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + OK])) as transport:
        answer = await transport.send(GET, deadline=5)
        assert (answer.status, answer.body, answer.headers.get("link")) == (200, b"ok", None)


async def test_an_answer_that_was_compressed_unasked_is_read() -> None:
    body = gzip.compress(b"ok")
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with transport_to(Script([head + body])) as transport:
        assert (await transport.send(GET, deadline=5)).body == b"ok"


@pytest.mark.parametrize("token", ["a\r\nX-Other: 1", "a\nb", "a\rb", "schlüssel"])
async def test_a_token_that_could_end_its_header_is_never_sent(token: str) -> None:
    async with Client.to(Connection("http://127.0.0.1:1", StaticCredentials(Credential(f"Bearer {token}")))) as client:
        with pytest.raises(RequestError, match="printable ASCII"):
            await client.raw("/x")


async def test_a_token_is_not_sent_over_http_but_to_this_machine() -> None:
    secret = StaticCredentials(Credential("Bearer secret"))
    async with Client.to(Connection("http://api.test:8080", secret)) as client:
        with pytest.raises(ConfigError, match="not sent over http"):
            await client.raw("/x")
    async with Client.to(Connection("http://127.0.0.1:1", secret)) as client:
        with pytest.raises(Unreachable):
            await client.raw("/x")


async def test_a_large_body_is_sent_while_other_requests_go_on() -> None:
    body = b"x" * (20 * PIECE)
    turns = 0

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(body)) == body
        writer.write(OK)
        await writer.drain()

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with transport_to(take) as transport:
        busy = asyncio.ensure_future(others())
        assert (await transport.send(Request("PUT", "/x", body=body), deadline=30)).body == b"ok"
        busy.cancel()
    assert turns >= 20


async def test_a_server_that_goes_away_while_a_large_body_is_sent_is_an_unknown_outcome() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with transport_to(leave) as transport:
        with pytest.raises(UnknownOutcome):
            await transport.send(Request("PUT", "/x", body=b"x" * (200 * PIECE)), deadline=30)


# What waits to be read


class Pipe(asyncio.Transport):
    """The far end of a connection, which only notes whether it may send."""

    def __init__(self) -> None:
        super().__init__()
        self.may_send = True

    def pause_reading(self) -> None:
        self.may_send = False

    def resume_reading(self) -> None:
        self.may_send = True

    def write(self, data: bytes | bytearray | memoryview) -> None: ...


def begun() -> tuple[Exchange, Pipe]:
    exchange, pipe = Exchange(), Pipe()
    exchange.connection_made(pipe)
    return exchange, pipe


async def test_a_server_waits_while_too_much_of_its_stream_is_unread() -> None:
    exchange, pipe = begun()
    reply = exchange.request(b"")
    exchange.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    await reply.head(1)
    exchange.data_received(b"x" * (READ_BUFFER - 1))
    assert pipe.may_send
    exchange.data_received(b"xx")
    assert not pipe.may_send
    chunks = reply.chunks(1)
    await anext(chunks)
    assert pipe.may_send


async def test_a_body_that_is_read_as_a_whole_never_waits() -> None:
    exchange, pipe = begun()
    reply = exchange.request(b"")
    size = 3 * READ_BUFFER
    exchange.data_received(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
    await reply.head(1)
    exchange.data_received(b"x" * (READ_BUFFER + 1))
    assert not pipe.may_send  # nobody has said yet how it will be read
    reading = asyncio.ensure_future(reply.body(1))
    await asyncio.sleep(0)
    assert pipe.may_send
    exchange.data_received(b"x" * (size - READ_BUFFER - 1))
    assert pipe.may_send
    assert len(await reading) == size


async def test_what_comes_in_a_burst_gathers_and_what_comes_alone_is_read_at_once() -> None:
    exchange, pipe = begun()
    reply = exchange.request(b"", gather=0.01)
    exchange.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    chunks = reply.chunks(1)
    exchange.data_received(b"a")
    assert await anext(chunks) == b"a"
    assert pipe.may_send  # nothing came before it: it is alone
    exchange.data_received(b"b")
    assert await anext(chunks) == b"b"
    assert not pipe.may_send
    while not pipe.may_send:
        await asyncio.sleep(0.001)
    exchange.data_received(b"c")
    assert await anext(chunks) == b"c"


async def test_a_line_has_a_longest_length() -> None:
    exchange, _ = begun()
    reply = exchange.request(b"")
    exchange.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    part = READ_BUFFER - 1
    lines = reply.lines(1)
    reading = asyncio.ensure_future(anext(lines))
    for _ in range(3):
        await asyncio.sleep(0)
        exchange.data_received(f"{part:x}\r\n".encode() + b"x" * part + b"\r\n")
    with pytest.raises(Broken, match="a line is longer"):
        await reading


# Proxies


class Proxy:
    """Answers CONNECT with a status, and then carries bytes to where the request wants to go."""

    def __init__(self, status: str = "200 OK") -> None:
        self._status = status
        self.heads: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        writer.write(f"HTTP/1.1 {self._status}\r\n\r\n".encode())
        await writer.drain()
        if not self._status.startswith("200"):
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_carry(reader, there_writer), _carry(there_reader, writer))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def secure_server(tmp_path: Path, script: Serve) -> AsyncIterator[tuple[str, bytes]]:
    authority = Authority(tmp_path)
    pair = authority.for_server("api.test", stem="server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    async with serving(script, context) as port:
        yield f"https://127.0.0.1:{port}", authority.certificate.read_bytes()


async def test_https_goes_through_a_proxy_as_a_tunnel_with_the_proxys_password(tmp_path: Path) -> None:
    proxy = Proxy()
    async with secure_server(tmp_path, Script([OK])) as (url, ca), serving(proxy) as port:
        connection = Connection(url, StaticCredentials(), ca=ca, proxy_url=f"http://user:p%40ss@127.0.0.1:{port}")
        async with HttpTransport(connection) as transport:
            assert (await transport.send(GET, deadline=5)).body == b"ok"
    assert proxy.heads[0].startswith(f"CONNECT {url.removeprefix('https://')} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in proxy.heads[0]


async def test_a_proxy_that_refuses_is_named_and_nothing_was_sent(tmp_path: Path) -> None:
    async with secure_server(tmp_path, Script([OK])) as (url, ca), serving(Proxy("407 No")) as port:
        connection = Connection(url, StaticCredentials(), ca=ca, proxy_url=f"http://127.0.0.1:{port}")
        async with HttpTransport(connection) as transport:
            with pytest.raises(Unreachable, match=f"the proxy 127.0.0.1:{port} answers 407"):
                await transport.send(POST, deadline=5)


async def test_plain_http_is_asked_of_the_proxy_by_its_whole_address() -> None:
    script = Script([OK])
    async with serving(script) as port:
        connection = Connection("http://api.test:8080/k8s", StaticCredentials(), proxy_url=f"http://127.0.0.1:{port}")
        async with HttpTransport(connection) as transport:
            assert (await transport.send(GET, deadline=5)).body == b"ok"
    assert script.heads[0].startswith(b"GET http://api.test:8080/k8s/x HTTP/1.1\r\nHost: api.test:8080\r\n")


async def test_a_server_of_another_authority_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with secure_server(tmp_path, Script([OK])) as (url, _):
        other = Authority(tmp_path / "other").certificate.read_bytes()
        async with HttpTransport(Connection(url, StaticCredentials(), ca=other)) as transport:
            with pytest.raises(Unreachable, match="certificate"):
                await transport.send(POST, deadline=5)
