"""The node's HTTPS endpoint: the part of a kubelet's API that the API server uses, which is container logs.

In: `GET /containerLogs/{namespace}/{pod}/{container}` with the options of `kubectl logs` and the token that node and
API server share. Out: the container's bytes. Errors are plain text in a kubelet's words; the API server turns them
into a Status.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from trainwright.api.times import rfc3339_nano, seconds_of
from trainwright.embedded.node import logs
from trainwright.embedded.node.logs import LogOptions
from trainwright.embedded.node.record import ContainerRecord, PodDirectory

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


class NodeServer:
    """Serves on loopback, at `port`, from `async with` on."""

    def __init__(self, find: FindPod, *, token: str, tls: ssl.SSLContext | None, host: str = "127.0.0.1") -> None:
        self._find = find
        self._token = token
        self._tls = tls
        self._host = host
        self.port = 0
        application = web.Application(middlewares=[self._authenticate])
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        application.router.add_get("/healthz", self._healthz)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)

    async def __aenter__(self) -> NodeServer:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, 0, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @web.middleware
    async def _authenticate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode(), self._token.encode()):
            return web.Response(status=401, text="Unauthorized\n")
        return await handler(request)

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        namespace, name, container = (request.match_info[part] for part in ("namespace", "pod", "container"))
        directory = self._find(namespace, name)
        if directory is None:
            return web.Response(status=404, text=f'pod "{name}" is not running on this node')
        try:
            options = options_of(request.query, time.time())
            previous = _is_true(request.query, "previous")
            restart = await asyncio.to_thread(_instance, directory, container, name, previous=previous)
        except BadOption as error:
            return web.Response(status=400, text=str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)

        def is_over() -> bool:
            found = _container(directory, container)
            return found is None or found["restartCount"] > restart or "running" not in found["state"]

        try:
            async for data in logs.read(directory.log(container, restart), options, is_over):
                await response.write(data)
            await response.write_eof()
        except (ConnectionResetError, ConnectionError):
            pass  # the client closed the connection
        return response


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
