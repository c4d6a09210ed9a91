"""`kubectl exec` on the node: the streams of a command, over a WebSocket or over SPDY.

In: a connection that has been switched to one of the protocols of `PROTOCOLS`, and a `Command`. Out: the command's
output as it comes, its end as a Status on the error channel. When the client leaves, the command is killed; whichever
side is slow makes the other wait.

Channels, the first byte of every message of a WebSocket: 0 stdin, 1 stdout, 2 stderr, 3 the Status, 4 a new size of
the terminal, 255 (of v5) the end of the channel whose number follows. SPDY has a stream for each, named in a header.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from trainwright.embedded.node.endpoint.execclient import Command, ExecFailed, RunningCommand, running
from trainwright.http.duplex import Duplex
from trainwright.http.spdy import Session, Stream
from trainwright.http.websocket import WebSocket
from trainwright.schema.jsonobject import Json

V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
PROTOCOLS = (V5, V4, V1)
STDIN, STDOUT, STDERR, ERROR, RESIZE, END = 0, 1, 2, 3, 4, 255
NAMES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}

IDLE_SECONDS = 4 * 3600.0
"""Without a byte in either direction, as a kubelet has it."""
STREAM_SECONDS = 30.0
"""For a client of SPDY to open its streams."""


class Channels(Protocol):
    """A client's side of the streams."""

    async def feed(self, take: Take) -> None:
        """Gives everything that the client sends to `take`, until it has left."""

    async def send(self, channel: int, data: bytes) -> None: ...

    async def close(self) -> None: ...


Take = Callable[[int, bytes], Awaitable[None]]


async def serve(directory: Path, command: Command, channels: Channels) -> None:
    """Runs the command for this client. Returns when both have ended."""
    try:
        async with asyncio.timeout(IDLE_SECONDS) as limit:
            loop = asyncio.get_running_loop()

            def touch() -> None:
                limit.reschedule(loop.time() + IDLE_SECONDS)

            async with running(directory, command) as run:
                await _converse(run, command, channels, touch)
    except ExecFailed as error:
        await _tell(channels, _failed(str(error)))
    except TimeoutError:
        await _tell(channels, _failed(f"nothing was read or written for {IDLE_SECONDS / 3600:g} hours"))


async def _converse(run: RunningCommand, command: Command, channels: Channels, touch: Callable[[], None]) -> None:
    async def take(channel: int, data: bytes) -> None:
        touch()
        if channel == STDIN:
            try:
                await run.write(data)
            except BrokenPipeError:
                pass  # it reads no more; what it still writes counts
        elif channel == RESIZE:
            _resize(run, data)
        elif channel == END and data[:1] == bytes([STDIN]):
            await run.close_input()

    async def pump(name: str, channel: int) -> None:
        while data := await run.read(name):
            touch()
            await channels.send(channel, data)

    async def answer() -> None:
        outputs = [pump("stdout", STDOUT)] if command.stdout or command.tty else []
        if command.stderr and not command.tty:
            outputs.append(pump("stderr", STDERR))
        await asyncio.gather(*outputs)
        await _tell(channels, _ended(await run.finished()))

    answering, listening = asyncio.ensure_future(answer()), asyncio.ensure_future(channels.feed(take))
    try:
        await asyncio.wait([answering, listening], return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            await answering
    except ConnectionError:
        pass  # the client has left
    finally:
        for task in (answering, listening):
            task.cancel()
        await asyncio.gather(answering, listening, return_exceptions=True)


def _resize(run: RunningCommand, data: bytes) -> None:
    try:
        size = json.loads(data)
        run.resize(int(size["Width"]) & 0xFFFF, int(size["Height"]) & 0xFFFF)
    except (ValueError, KeyError, TypeError, OSError):
        pass  # what is no size, or of a terminal that has ended, changes nothing


async def _tell(channels: Channels, status: Json) -> None:
    try:
        await channels.send(ERROR, json.dumps(status).encode())
        await channels.close()
    except ConnectionError:
        pass  # the client has left


def _ended(code: int) -> Json:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _failed(why: str) -> Json:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: error executing command in container: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": f"error executing command in container: {why}"}]},
        "code": 500,
    }


class WebSocketChannels:
    """Every message begins with the number of its channel."""

    def __init__(self, duplex: Duplex, protocol: str) -> None:
        self._socket = WebSocket(duplex, is_client=False)
        self._protocol = protocol

    async def feed(self, take: Take) -> None:
        while (message := await self._socket.receive()) is not None:
            if message and (message[0] != END or self._protocol == V5):
                await take(message[0], message[1:])

    async def send(self, channel: int, data: bytes) -> None:
        if channel == ERROR and self._protocol not in (V4, V5):
            status = json.loads(data)
            data = str(status.get("message", "")).encode()
            if not data:
                return
        await self._socket.send(bytes([channel]) + data)

    async def close(self) -> None:
        await self._socket.close()


class SpdyChannels:
    """A stream for each channel, which the client opens: `open` waits for those that the command needs."""

    def __init__(self, duplex: Duplex, command: Command) -> None:
        self._duplex = duplex
        self._session = Session(duplex, self._opened)
        self._streams: dict[int, Stream] = {}
        self._needed = {ERROR} | ({RESIZE} if command.tty else set())
        self._needed |= {STDIN} if command.stdin else set()
        self._needed |= {STDOUT} if command.stdout else set()
        self._needed |= {STDERR} if command.stderr and not command.tty else set()
        self._ready = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def _opened(self, stream: Stream) -> bool:
        channel = NAMES.get(stream.headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            return False
        self._streams[channel] = stream
        if self._needed <= self._streams.keys():
            self._ready.set()
        return True

    async def open(self) -> None:
        """Raises `TimeoutError` when the streams have not been opened in time."""
        self._running = asyncio.ensure_future(self._session.run())
        async with asyncio.timeout(STREAM_SECONDS):
            await self._ready.wait()

    async def feed(self, take: Take) -> None:
        async def pump(channel: int) -> None:
            while data := await self._streams[channel].read():
                await take(channel, data)
            if channel == STDIN:
                await take(END, bytes([STDIN]))

        assert self._running is not None
        pumps = [asyncio.ensure_future(pump(channel)) for channel in (STDIN, RESIZE) if channel in self._streams]
        try:
            await asyncio.wait([self._running])
        finally:
            for task in pumps:
                task.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def send(self, channel: int, data: bytes) -> None:
        if channel in self._streams:
            await self._streams[channel].write(data)

    async def close(self) -> None:
        """Ends the streams, and waits a little for the client to leave by itself."""
        assert self._running is not None
        for channel in (STDOUT, STDERR, ERROR):
            if channel in self._streams:
                await self._streams[channel].close()
        await asyncio.wait([self._running], timeout=STREAM_SECONDS / 10)

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self._duplex.close()
