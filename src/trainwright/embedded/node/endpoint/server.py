"""The node's HTTPS endpoint: the part of a kubelet's API that the API server uses: container logs, and streams.

In: `GET /containerLogs/{namespace}/{pod}/{container}` with the options of `kubectl logs` and the token that node and
API server share. Out: the container's bytes. Errors are plain text in a kubelet's words; the API server turns them
into a Status. `streamserver` has exec, attach and port-forward. `GET /usage` says what containers use (`usage`).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict
from urllib.parse import parse_qsl, unquote

from trainwright.api.times import rfc3339_nano, seconds_of
from trainwright.embedded.node.endpoint import logs
from trainwright.embedded.node.endpoint.logs import LogOptions
from trainwright.embedded.node.endpoint.streamserver import PATHS, StreamServer
from trainwright.embedded.node.pods.record import ContainerRecord, PodDirectory
from trainwright.embedded.node.resources.usage import Keeper, Meter, Owner
from trainwright.http.request import Request
from trainwright.http.response import JSON, ConnectionSink, Response, StreamedResponse, UpgradedResponse, text
from trainwright.http.server import Server

FindPod = Callable[[str, str], PodDirectory | None]
"""Returns the directory of the pod that has this namespace and name now."""


class BadOption(Exception):
    """A log option that is invalid; the message names it."""


def options_of(query: Mapping[str, str], now: float) -> LogOptions:
    """The options of a request. `sinceSeconds` and `sinceTime` both become `since`."""

    def number(name: str, least: int) -> int | None:
        text = query.get(name)
        if text is None or text == "":
            return None
        if not text.lstrip("-").isdecimal() or int(text) < least:
            raise BadOption(f"{name}: must be an integer of at least {least}, not {text!r}")
        return int(text)

    since_seconds, since_time = number("sinceSeconds", 1), query.get("sinceTime")
    if since_seconds is not None and since_time:
        raise BadOption("at most one of sinceTime or sinceSeconds may be specified")
    since = None
    if since_seconds is not None:
        since = rfc3339_nano(int((now - since_seconds) * 1e9))
    elif since_time:
        try:
            since = rfc3339_nano(int(seconds_of(since_time) * 1_000_000) * 1000)
        except ValueError as error:
            raise BadOption(f"sinceTime: {error}") from None
    return LogOptions(
        follow=_is_true(query, "follow"),
        tail_lines=number("tailLines", 0),
        since=since,
        timestamps=_is_true(query, "timestamps"),
        limit_bytes=number("limitBytes", 1),
    )


def _is_true(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("1", "t", "true")


class NodeServer(Server):
    """Serves on loopback, at `port`, from `async with` on."""

    def __init__(
        self,
        find: FindPod,
        *,
        token: str,
        tls: ssl.SSLContext | None,
        host: str = "127.0.0.1",
        keepers: Callable[[], Mapping[Owner, Keeper]] = dict,
    ) -> None:
        self._find = find
        self._streams = StreamServer(find)
        self._meter = Meter(keepers)
        self._token = token.encode()
        super().__init__(self.answer, (host, 0), tls, shutdown_seconds=1.0)

    async def answer(self, request: Request) -> Response | StreamedResponse | UpgradedResponse:
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode(errors="replace"), self._token):
            return text("Unauthorized\n", 401)
        parts = [unquote(part) for part in request.target.partition("?")[0].split("/")[1:]]
        if parts == ["healthz"]:
            return text("ok")
        if parts == ["usage"]:
            return await self._usage()
        if parts[0] in PATHS and len(parts) == 4 - (parts[0] == "portForward"):
            return await self._streams.answer(request, parts)
        if len(parts) != 4 or parts[0] != "containerLogs":
            return text("404: Not Found", 404)
        if request.method not in ("GET", "HEAD"):
            return text("405: Method Not Allowed", 405)
        query = dict(reversed(parse_qsl(request.query, keep_blank_values=True)))
        return await self._logs(parts[1], parts[2], parts[3], query)

    async def _usage(self) -> Response:
        """What each container and the machine use, in a form of our own, for the API server."""
        try:
            report = await self._meter.report()
        except OSError as error:
            return text(f"the usage of this machine cannot be read: {error}", 503)
        containers = [
            {"pod": pod, "name": name, "usage": asdict(usage)} for (pod, name), usage in report.containers.items()
        ]
        body = {"at": report.at, "window": report.window, "machine": asdict(report.machine), "containers": containers}
        return Response(200, json.dumps(body).encode(), JSON)

    async def _logs(
        self, namespace: str, name: str, container: str, query: Mapping[str, str]
    ) -> Response | StreamedResponse:
        directory = self._find(namespace, name)
        if directory is None:
            return text(f'pod "{name}" is not running on this node', 404)
        try:
            options = options_of(query, time.time())
            previous = _is_true(query, "previous")
            restart = await asyncio.to_thread(_instance, directory, container, name, previous=previous)
        except BadOption as error:
            return text(str(error), 400)

        def is_over() -> bool:
            found = _container(directory, container)
            return found is None or found["restartCount"] > restart or "running" not in found["state"]

        async def send(sink: ConnectionSink) -> None:
            async with aclosing(logs.read(directory.log(container, restart), options, is_over)) as pieces:
                async for data in pieces:
                    await sink.send(data)

        return StreamedResponse(send, "text/plain")


def _container(directory: PodDirectory, container: str) -> ContainerRecord | None:
    record = directory.record()
    if record is None:
        return None
    return record["containers"].get(container) or record["initContainers"].get(container)


def _instance(directory: PodDirectory, container: str, pod: str, *, previous: bool) -> int:
    """The run of the container that is asked for, as its restart count, which names its log."""
    found = _container(directory, container)
    if found is None and directory.record() is None:  # the API server knows the container; nothing of it runs yet
        raise BadOption(f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating')
    if found is None:
        raise BadOption(f"container {container} is not valid for pod {pod}")
    if previous:
        restart = found["restartCount"] - ("waiting" not in found["state"])
        if restart < 0 or not found["lastState"]:
            raise BadOption(f'previous terminated container "{container}" in pod "{pod}" not found')
        return restart
    if "waiting" in found["state"] and not found["lastState"]:
        reason = found["state"]["waiting"].get("reason", "ContainerCreating")
        raise BadOption(f'container "{container}" in pod "{pod}" is waiting to start: {reason}')
    return found["restartCount"]
