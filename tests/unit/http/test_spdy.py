"""The server's side of SPDY/3.1, spoken to by hand; kubectl itself is in tests/kubectl."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections import deque

import pytest

from trainwright.http.spdy import LARGEST_FRAME, MOST_UNREAD, Broken, Session, Stream
from trainwright.http.spdydictionary import DICTIONARY


class Client:
    """Writes frames, and takes apart what the session answers."""

    def __init__(self) -> None:
        self.sent: deque[bytes] = deque()
        self.answers = bytearray()
        self.waiting = asyncio.Event()
        self.is_over = False
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    # The carrier

    async def read(self) -> bytes:
        while not self.sent and not self.is_over:
            self.waiting.clear()
            await self.waiting.wait()
        return self.sent.popleft() if self.sent else b""

    async def write(self, data: bytes) -> None:
        self.answers += data

    # The client

    def send(self, data: bytes) -> None:
        self.sent.append(data)
        self.waiting.set()

    def leave(self) -> None:
        self.is_over = True
        self.waiting.set()

    def control(self, kind: int, flags: int, body: bytes, version: int = 3) -> None:
        self.send(struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(body)) + body)

    def open(self, number: int, headers: dict[str, str], flags: int = 0) -> None:
        text = struct.pack(">I", len(headers))
        for pair in headers.items():
            for word in pair:
                text += struct.pack(">I", len(word)) + word.encode()
        block = self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self.control(1, flags, struct.pack(">IIH", number, 0, 0) + block)

    def data(self, number: int, data: bytes, flags: int = 0) -> None:
        self.send(struct.pack(">II", number, flags << 24 | len(data)) + data)

    def frames(self) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        while self.answers:
            first, second = struct.unpack_from(">II", self.answers)
            flags, length = second >> 24, second & 0xFFFFFF
            body = bytes(self.answers[8 : 8 + length])
            del self.answers[: 8 + length]
            if first & 0x80000000:
                found.append(("control", first & 0xFFFF, int.from_bytes(body[:4], "big")))
            else:
                found.append(("data", first, flags, body))
        return found


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Scene:
    def __init__(self) -> None:
        self.client = Client()
        self.streams: list[Stream] = []
        self.session = Session(self.client, self._opened)

    async def _opened(self, stream: Stream) -> bool:
        self.streams.append(stream)
        return stream.headers.get("wanted") != "no"


def test_the_dictionary_is_the_standards() -> None:
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2  # the number by which zlib names it in every stream


async def test_streams_are_opened_written_and_ended_on_both_sides() -> None:
    scene = Scene()
    running = asyncio.ensure_future(scene.session.run())
    scene.client.open(1, {"streamtype": "data", "port": "80"})
    scene.client.open(3, {"StreamType": "error"}, flags=1)
    scene.client.data(1, b"hello ")
    scene.client.data(1, b"there", flags=1)
    await settle()
    first, second = scene.streams
    assert (first.headers, second.headers) == ({"streamtype": "data", "port": "80"}, {"streamtype": "error"})
    assert await first.read() + await first.read() == b"hello there"
    assert await second.read() == b""
    await first.write(b"hi")
    await first.close()
    assert scene.client.frames() == [("control", 2, 1), ("control", 2, 3), ("data", 1, 0, b"hi"), ("data", 1, 1, b"")]
    scene.client.leave()
    await running


async def test_pings_come_back_and_what_nobody_wants_is_refused() -> None:
    scene = Scene()
    running = asyncio.ensure_future(scene.session.run())
    scene.client.control(6, 0, struct.pack(">I", 7))
    scene.client.control(4, 0, bytes(12))  # settings
    scene.client.open(1, {"wanted": "no"})
    scene.client.open(2, {})  # a server's number
    scene.client.data(99, b"for nobody")
    await settle()
    assert scene.client.frames() == [("control", 6, 7), ("control", 3, 1), ("control", 3, 2)]
    scene.client.leave()
    await running


async def test_a_stream_that_is_reset_ends_and_cannot_be_written_to() -> None:
    scene = Scene()
    running = asyncio.ensure_future(scene.session.run())
    scene.client.open(1, {})
    scene.client.control(3, 0, struct.pack(">II", 1, 5))
    await settle()
    assert await scene.streams[0].read() == b""
    with pytest.raises(ConnectionResetError):
        await scene.streams[0].write(b"x")
    scene.client.leave()
    await running


async def test_a_stream_that_nobody_reads_makes_the_client_wait() -> None:
    scene = Scene()
    running = asyncio.ensure_future(scene.session.run())
    scene.client.open(1, {})
    for _ in range(20):
        scene.client.data(1, bytes(100_000))
    await settle()
    assert len(scene.client.sent) * 100_000 >= 2_000_000 - MOST_UNREAD - 300_000
    total = 0
    while total < 2_000_000:
        total += len(await scene.streams[0].read())
    scene.client.leave()
    await running


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">HHI", 0x8002, 1, 0),  # another version
        struct.pack(">HHI", 0x8003, 1, 4) + bytes(4),  # too short
        struct.pack(">HHI", 0x8003, 1, 20) + bytes(20),  # headers that are not compressed
        struct.pack(">II", 1, LARGEST_FRAME + 1),
    ],
)
async def test_what_is_no_spdy_ends_the_connection(frame: bytes) -> None:
    scene = Scene()
    scene.client.send(frame)
    with pytest.raises(Broken):
        await scene.session.run()


async def test_the_end_of_the_connection_ends_its_streams() -> None:
    scene = Scene()
    running = asyncio.ensure_future(scene.session.run())
    scene.client.open(1, {})
    await settle()
    scene.client.leave()
    await running
    assert await scene.streams[0].read() == b""
