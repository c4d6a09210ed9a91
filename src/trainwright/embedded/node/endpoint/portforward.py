"""`kubectl port-forward` on the node: connections of a client to ports of a pod.

In: a connection that has been switched to SPDY, to a WebSocket that carries SPDY, or to a WebSocket with two channels
for each port. Out: connections to ports that a process of the pod listens on, each byte passed on unchanged, until
nothing has been passed on for four hours, as in a kubelet. In SPDY every forwarded connection is a pair of streams,
data and error, which have the same request id.
"""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from trainwright.embedded.node.endpoint import execclient
from trainwright.embedded.node.network.addresses import LOOPBACK, PortName, port_here
from trainwright.embedded.node.network.listeners import listening_addresses
from trainwright.embedded.node.pods.record import PodRecord, PodToRun
from trainwright.http.duplex import Duplex
from trainwright.http.spdy import Broken, Carrier, Session, Stream
from trainwright.http.websocket import WebSocket

PROTOCOL = "portforward.k8s.io"
TUNNEL = f"SPDY/3.1+{PROTOCOL}"
CHANNELS = ("v4.channel.k8s.io",)
CONNECT_SECONDS = 10.0
READ_BYTES = 32 * 1024
IDLE_SECONDS = 4 * 3600.0
"""A kubelet's streamingConnectionIdleTimeout."""
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 nothing is bound to them here


@dataclass(frozen=True, slots=True)
class Pod:
    """Where a pod's ports are: its processes share the machine's network."""

    name: str
    uid: str
    hostname: str
    address: str
    ports: dict[PortName, int]
    supervisor: int
    """Whose descendants the pod's processes are."""
    directory: Path | None = None
    """The directory of a pod that has a network of its own: its supervisor makes the connection."""

    @classmethod
    def of(cls, pod: PodToRun, record: PodRecord, directory: Path) -> Pod:
        supervisor = int(record["supervisor"][0])
        own = directory if pod.get("network") else None
        return cls(pod["name"], pod["uid"], pod["hostname"], pod["address"], pod["ports"], supervisor, own)

    async def connect(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the port, or to the one that the node gave the job in its place."""
        here = port_here(self.ports, self.hostname, port)
        problem = OSError(errno.ECONNREFUSED, "Connection refused: no process of the pod listens on it")
        for address in await asyncio.to_thread(self._addresses, here):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    if self.directory is None:
                        return await asyncio.open_connection(address, here, limit=READ_BYTES)
                    made = await execclient.connect(self.directory, address, here)
                    return await asyncio.open_connection(sock=made, limit=READ_BYTES)
            except OSError as error:  # TimeoutError is one
                problem = error
        raise problem

    def _addresses(self, port: int) -> list[str]:
        """Where the pod itself listens: the machine's network is everybody's, and another may listen beside it."""
        found = listening_addresses(self.supervisor, port)
        if found is None:
            return [self.address]
        everywhere = [self.address] if any(address in WILDCARDS for address in found) else []
        return sorted({*everywhere, *found} - {*WILDCARDS}, key=(self.address, LOOPBACK, *found).index)

    def failed(self, port: int, error: OSError) -> bytes:
        why = error.strerror or str(error) or type(error).__name__
        return f"error forwarding port {port} to pod {self.name}, uid {self.uid}: {why}".encode()


class Side(Protocol):
    """The client's side of one forwarded connection."""

    @property
    def has_left(self) -> bool:
        """Whether nobody is there any more, neither to write nor to read."""
        ...

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None:
        """Nothing more is written."""


class Idleness:
    """Since when nothing has been passed on."""

    def __init__(self, seconds: float = IDLE_SECONDS) -> None:
        self._seconds = seconds
        self._last = asyncio.get_running_loop().time()

    def end(self) -> None:
        """Something was passed on."""
        self._last = asyncio.get_running_loop().time()

    async def last(self) -> None:
        """Returns when it has lasted too long."""
        loop = asyncio.get_running_loop()
        while (remaining := self._last + self._seconds - loop.time()) > 0:  # noqa: ASYNC110 it waits for a time
            await asyncio.sleep(remaining)


async def forward(side: Side, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idleness: Idleness) -> None:
    """Passes bytes on until both directions have ended, or nothing more comes."""

    async def inwards() -> None:
        while data := await side.read():
            idleness.end()
            writer.write(data)
            await writer.drain()
        if side.has_left:
            writer.transport.abort()
        elif writer.can_write_eof():
            writer.write_eof()

    async def outwards() -> None:
        while data := await reader.read(READ_BYTES):
            idleness.end()
            await side.write(data)
        await side.close()

    tasks = [asyncio.ensure_future(work) for work in (inwards(), outwards(), idleness.last())]
    try:
        # The server has said all: what the client still sends goes nowhere.
        done, _ = await asyncio.wait(tasks[1:], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*done)
    except ConnectionError:
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()


@dataclass(slots=True)
class Pair:
    data: Stream | None = None
    error: Stream | None = None


@dataclass(slots=True)
class Forwarding:
    """All that one client has forwarded over one SPDY connection."""

    pod: Pod
    idleness: Idleness = field(default_factory=Idleness)
    _pairs: dict[str, Pair] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, carrier: Carrier) -> None:
        session = Session(carrier, self._opened)
        ways = [asyncio.ensure_future(session.run()), asyncio.ensure_future(self.idleness.last())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*done)
        except (Broken, ConnectionError):
            pass
        finally:
            for task in (*ways, *self._tasks):
                task.cancel()
            await asyncio.gather(*ways, *self._tasks, return_exceptions=True)

    async def _opened(self, stream: Stream) -> bool:
        self.idleness.end()
        port, kind = stream.headers.get("port", ""), stream.headers.get("streamtype", "")
        if not port.isdecimal() or not 0 < int(port) < 65536 or kind not in ("data", "error"):
            return False
        # Old clients send no id: their streams come in pairs, error first.
        request = stream.headers.get("requestid") or f"stream {stream.number - 2 * (kind == 'data')}"
        pair = self._pairs.setdefault(request, Pair())
        if getattr(pair, kind) is not None:
            return False
        setattr(pair, kind, stream)
        if pair.data is not None and pair.error is not None:
            del self._pairs[request]
            task = asyncio.ensure_future(self._forward(int(port), pair.data, pair.error))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return True

    async def _forward(self, port: int, data: Stream, error: Stream) -> None:
        try:
            reader, writer = await self.pod.connect(port)
        except OSError as problem:
            await error.write(self.pod.failed(port, problem))
            await error.close()
            await data.reset()
            return
        await forward(data, reader, writer, self.idleness)
        await error.close()
        data.forget()
        error.forget()


@dataclass(frozen=True, slots=True)
class Tunnel:
    """SPDY's bytes as messages of a WebSocket."""

    socket: WebSocket

    async def read(self) -> bytes:
        while (message := await self.socket.receive()) is not None:
            if message:
                return message
        return b""

    async def write(self, data: bytes) -> None:
        await self.socket.send(data)


class Channel:
    """One port over a WebSocket of its own: channel 0 is data, channel 1 errors; each begins with the port."""

    def __init__(self, duplex: Duplex) -> None:
        self._socket = WebSocket(duplex, is_client=False)
        self.has_left = False

    async def run(self, pod: Pod, port: int) -> None:
        for channel in (0, 1):
            await self._socket.send(bytes([channel]) + port.to_bytes(2, "little"))
        try:
            reader, writer = await pod.connect(port)
        except OSError as problem:
            await self._socket.send(b"\1" + pod.failed(port, problem))
        else:
            await forward(self, reader, writer, Idleness())
        await self._socket.close()

    async def read(self) -> bytes:
        while (message := await self._socket.receive()) is not None:
            if message[:1] == b"\0" and len(message) > 1:
                return message[1:]
        self.has_left = True  # a WebSocket has no half end
        return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send(b"\0" + data)

    async def close(self) -> None: ...
