"""Commands and ports of pods: `pods/exec` and `pods/portforward` over WebSockets, on any cluster.

    async with execute(client, "default", "pod", ["cat"], stdin=True) as command: …
    async with forward(client, "default", "pod", 8080) as port: …

exec speaks the channel protocol v5, and v4 with servers before 1.30, where an input cannot be ended. A forwarded
connection is a WebSocket of its own, with two channels, as kubelets have always spoken it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from trainwright.api.resources import PODS
from trainwright.client.aio import HttpTransport
from trainwright.client.client import Client
from trainwright.client.errors import RequestError, Status, UnknownOutcome
from trainwright.client.requests import Request, path_of
from trainwright.http.websocket import WebSocket

SECONDS = 60.0
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, END = 0, 1, 2, 3, 4, 255
PIECE = 32 * 1024


class CommandFailed(UnknownOutcome):
    """The command could not be run; the message is the cluster's."""


class PodCommand:
    """A command that runs in a pod. Read `output()` to its end, then ask for the `exit_code`."""

    def __init__(self, socket: WebSocket, protocol: str) -> None:
        self._socket = socket
        self._can_end_input = protocol == V5
        self._status: Status | None = None

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            await self._socket.send(bytes([STDIN]) + data[begin : begin + PIECE])

    async def end_input(self) -> None:
        if self._can_end_input:
            await self._socket.send(bytes([END, STDIN]))

    async def resize(self, width: int, height: int) -> None:
        await self._socket.send(bytes([RESIZE]) + msgspec.json.encode({"Width": width, "Height": height}))

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """`STDOUT` or `STDERR` with what was written there, until the command ends."""
        while (message := await self._socket.receive()) is not None:
            if message[:1] == bytes([ERROR]) and len(message) > 1:
                self._status = msgspec.json.decode(message[1:], type=Status)
                await self._socket.close()
                return
            if message and message[0] in (STDOUT, STDERR) and len(message) > 1:
                yield message[0], message[1:]

    @property
    def exit_code(self) -> int:
        """Raises `CommandFailed` when the command could not be run, or the connection ended before it did."""
        if self._status is None:
            raise CommandFailed("the connection ended before the command did")
        if self._status.status == "Success":
            return 0
        for cause in self._status.details.causes if self._status.details else ():
            if cause.reason == "ExitCode" and cause.message.isdecimal():
                return int(cause.message)
        raise CommandFailed(self._status.message)


@asynccontextmanager
async def execute(
    client: Client,
    namespace: str,
    pod: str,
    argv: Sequence[str],
    *,
    container: str | None = None,
    stdin: bool = False,
    tty: bool = False,
) -> AsyncIterator[PodCommand]:
    """Leaving the block ends the command, where the cluster does so."""
    query = [("command", word) for word in argv]
    query += [("container", container)] if container else []
    flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    query += [(name, "true") for name, wanted in flags.items() if wanted]
    request = Request("GET", path_of(PODS, namespace, pod, "exec"), tuple(query))
    async with _transport(client).websocket(request, [V5, V4], deadline=SECONDS) as (socket, protocol):
        yield PodCommand(socket, protocol)


class PodPort:
    """A connection to a port of a pod."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._greeted = [False, False]

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            await self._socket.send(b"\0" + data[begin : begin + PIECE])

    async def read(self) -> bytes:
        """What has come; nothing at the end. Raises `CommandFailed` when nobody listens there."""
        while (message := await self._socket.receive()) is not None:
            channel, data = message[:1], message[1:]
            if channel not in (b"\0", b"\1"):
                continue
            if not self._greeted[channel[0]]:  # each channel begins with the number of the port
                self._greeted[channel[0]] = True
                data = data[2:]
            if channel == b"\1" and data:
                raise CommandFailed(data.decode(errors="replace"))
            if data:
                return data
        return b""

    async def close(self) -> None:
        await self._socket.close()


@asynccontextmanager
async def forward(client: Client, namespace: str, pod: str, port: int) -> AsyncIterator[PodPort]:
    request = Request("GET", path_of(PODS, namespace, pod, "portforward"), (("ports", str(port)),))
    async with _transport(client).websocket(request, [V4], deadline=SECONDS) as (socket, _):
        yield PodPort(socket)


def _transport(client: Client) -> HttpTransport:
    if not isinstance(client.transport, HttpTransport):
        raise RequestError("streams need a connection over the network")
    return client.transport
