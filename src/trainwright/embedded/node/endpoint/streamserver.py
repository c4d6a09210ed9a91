"""The node's streams: `exec`, `attach` and `port-forward`, as a kubelet serves them.

In: a request of the API server for `/exec/{namespace}/{pod}/{container}`, `/attach/…` or
`/portForward/{namespace}/{pod}` that asks for a WebSocket or for SPDY/3.1. Out: the connection, switched. Errors before
that are plain text in a kubelet's words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from urllib.parse import parse_qs

from trainwright.embedded.node.endpoint import logs, portforward, remotecommand
from trainwright.embedded.node.endpoint.execclient import Command
from trainwright.embedded.node.endpoint.logs import LogOptions
from trainwright.embedded.node.endpoint.portforward import Channel, Forwarding, Pod, Tunnel
from trainwright.embedded.node.endpoint.remotecommand import Channels, SpdyChannels, WebSocketChannels
from trainwright.embedded.node.pods.record import ContainerRecord, PodDirectory
from trainwright.http import websocket
from trainwright.http.duplex import Duplex
from trainwright.http.request import Request
from trainwright.http.response import Response, UpgradedResponse, text
from trainwright.http.websocket import WebSocket

PATHS = ("exec", "attach", "portForward")
MOST_SESSIONS = 128
"""Streams of the whole node at once."""
SPDY = "SPDY/3.1"
V4 = "v4.channel.k8s.io"
Serve = Callable[[Duplex, str], Awaitable[None]]


class StreamServer:
    def __init__(self, find: Callable[[str, str], PodDirectory | None]) -> None:
        self._find = find
        self._sessions = 0

    async def answer(self, request: Request, parts: list[str]) -> Response | UpgradedResponse:
        """`parts` are those of the path, the first of them one of `PATHS`."""
        if request.method not in ("GET", "POST"):
            return text("405: Method Not Allowed", 405)
        kind, namespace, name = parts[:3]
        directory = self._find(namespace, name)
        if directory is None:
            return text(f'pod "{name}" is not running on this node', 404)
        if self._sessions >= MOST_SESSIONS:
            return text(f"this node serves {MOST_SESSIONS} streams already", 429)
        query = parse_qs(request.query, keep_blank_values=True)
        if kind == "portForward":
            return await self._port_forward(request, directory, query)
        return await self._command(request, directory, kind, parts[3], query)

    async def _command(
        self, request: Request, directory: PodDirectory, kind: str, container: str, query: Mapping[str, list[str]]
    ) -> Response | UpgradedResponse:
        command = _command_of(container, query)
        if not (command.stdin or command.stdout or command.stderr):
            return text("you must specify at least 1 of stdin, stdout, stderr", 400)
        if kind == "exec" and not command.argv:
            return text("you must specify at least 1 command for the container", 400)
        record = await asyncio.to_thread(_running, directory, container)
        if record is None:
            return text(f'container not found ("{container}")', 404)

        async def converse(channels: Channels) -> None:
            if kind == "exec":
                await remotecommand.serve(directory.path, command, channels)
            else:
                await _attach(directory, container, record["restartCount"], channels)

        async def serve(duplex: Duplex, protocol: str) -> None:
            if protocol != SPDY:
                await converse(WebSocketChannels(duplex, protocol))
                return
            channels = SpdyChannels(duplex, command)
            try:
                await channels.open()
                await converse(channels)
            except TimeoutError:
                pass  # the client never opened its streams
            finally:
                await channels.end()

        return self._switched(request, remotecommand.PROTOCOLS, V4, serve)

    async def _port_forward(
        self, request: Request, directory: PodDirectory, query: Mapping[str, list[str]]
    ) -> Response | UpgradedResponse:
        to_run, record = await asyncio.to_thread(lambda: (directory.pod(), directory.record()))
        if to_run is None or record is None:
            return text("the pod is not running", 404)
        pod = Pod.of(to_run, record, directory.path)
        ports = [port for given in query.get("port", query.get("ports", [])) for port in given.split(",")]

        async def serve(duplex: Duplex, protocol: str) -> None:
            if protocol in portforward.CHANNELS:
                await Channel(duplex).run(pod, int(ports[0]))
                return
            carrier = duplex if protocol == SPDY else Tunnel(WebSocket(duplex, is_client=False))
            await Forwarding(pod).run(carrier)

        spoken = [portforward.TUNNEL]
        if len(ports) == 1 and ports[0].isdecimal() and 0 < int(ports[0]) < 65536:
            spoken += portforward.CHANNELS
        return self._switched(request, spoken, portforward.PROTOCOL, serve)

    def _switched(
        self, request: Request, protocols: tuple[str, ...] | list[str], over_spdy: str, serve: Serve
    ) -> Response | UpgradedResponse:
        """The answer that switches to one of the protocols of a WebSocket, or to SPDY."""
        headers = request.headers
        if websocket.is_asked_for(headers):
            try:
                protocol, fields = websocket.accept(headers, protocols)
            except websocket.BadHandshake as error:
                return text(str(error), 400)
        elif headers.get("Upgrade", "").upper() == SPDY:
            offered = {
                name.strip() for line in headers.getall("X-Stream-Protocol-Version", []) for name in line.split(",")
            }
            if over_spdy not in offered:
                return text(f"unable to upgrade: none of {sorted(offered)} is spoken here, but {over_spdy}", 403)
            protocol = SPDY
            fields = [("Upgrade", SPDY), ("Connection", "Upgrade"), ("X-Stream-Protocol-Version", over_spdy)]
        else:
            return text("Upgrade request required", 400)

        async def counted(duplex: Duplex) -> None:
            self._sessions += 1
            try:
                await serve(duplex, protocol)
            finally:
                self._sessions -= 1

        return UpgradedResponse(counted, fields)


def _command_of(container: str, query: Mapping[str, list[str]]) -> Command:
    def flag(*names: str) -> bool:
        return any(query.get(name, [""])[0].lower() in ("1", "t", "true") for name in names)

    return Command(
        container,
        query.get("command", []),
        stdin=flag("input", "stdin"),
        stdout=flag("output", "stdout"),
        stderr=flag("error", "stderr"),
        tty=flag("tty"),
    )


def _running(directory: PodDirectory, container: str) -> ContainerRecord | None:
    record = directory.record()
    if record is None:
        return None
    found = record["containers"].get(container) or record["initContainers"].get(container)
    return found if found is not None and "running" in found["state"] else None


async def _attach(directory: PodDirectory, container: str, restart: int, channels: Channels) -> None:
    """What the container writes from now on. Its input is closed: nobody can write to it."""

    def is_over() -> bool:
        found = _running(directory, container)
        return found is None or found["restartCount"] != restart

    async def listen() -> None:
        async def ignore(channel: int, data: bytes) -> None: ...

        await channels.feed(ignore)

    async def tell() -> None:
        options = LogOptions(follow=True, tail_lines=0)
        async with aclosing(logs.read(directory.log(container, restart), options, is_over)) as pieces:
            async for data in pieces:
                await channels.send(remotecommand.STDOUT, data)
        await channels.close()

    tasks = [asyncio.ensure_future(listen()), asyncio.ensure_future(tell())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
