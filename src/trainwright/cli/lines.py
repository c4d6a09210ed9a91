"""The output of all ranks, merged: one stream for each container of each pod, every line with its rank in front.

A stream follows its container to the end. When the connection to the API server breaks, it continues from the time of
the last line it printed, so that no line is lost and none is printed twice.
"""

from __future__ import annotations

import asyncio
from collections import deque

from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.ranks import Speaker, speaker
from trainwright.cli.terminal import Terminal
from trainwright.client import kubeconfig
from trainwright.client.client import Client
from trainwright.client.errors import BadRequest, ClientError, NotFound
from trainwright.schema.jsonobject import Json

TAIL = 20
RETRY_SECONDS = 0.3


class LogLines:
    """Prints the lines of the containers it follows, until they end. Leaving `async with` ends its streams."""

    def __init__(self, cluster: ClusterDirectory, namespace: str, terminal: Terminal, *, follow: bool = True) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._terminal = terminal
        self._follow = follow
        self._streams: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.tails: dict[tuple[str, str], deque[str]] = {}
        """The last lines of every (pod, container)."""

    def follow(self, pods: list[Json]) -> None:
        """Follows every container that has started and is not followed yet."""
        for pod in pods:
            status = pod.get("status", {})
            for container in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
                key = (pod["metadata"]["name"], container["name"])
                started = any(part in container.get("state", {}) for part in ("running", "terminated"))
                if started and key not in self._streams:
                    self.tails[key] = deque(maxlen=TAIL)
                    stream = self._stream(pod, container["name"])
                    self._streams[key] = asyncio.create_task(stream, name=f"log of {'/'.join(key)}")

    async def drain(self, seconds: float | None = None) -> None:
        """Waits until all streams have been read to the end."""
        if self._streams:
            ended, _ = await asyncio.wait(self._streams.values(), timeout=seconds)
            for stream in ended:
                stream.result()

    async def __aenter__(self) -> LogLines:
        return self

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams.values():
            stream.cancel()
        await asyncio.gather(*self._streams.values(), return_exceptions=True)

    async def _stream(self, pod: Json, container: str) -> None:
        lines = _Attributed(speaker(pod), self._terminal, self.tails[(pod["metadata"]["name"], container)])
        while True:
            try:
                async with Client.to(kubeconfig.load(self._cluster.kubeconfig)) as client:
                    await self._read(client, pod["metadata"]["name"], container, lines)
                return
            except (NotFound, BadRequest):
                return  # the pod is gone, or its container never started
            except ClientError:
                await asyncio.sleep(RETRY_SECONDS)

    async def _read(self, client: Client, pod: str, container: str, lines: _Attributed) -> None:
        since = lines.resume()
        async with client.logs(
            pod, self._namespace, container=container, follow=self._follow, timestamps=True, since_time=since
        ) as stream:
            async for line in stream.lines():
                lines.add(line.decode("utf-8", "replace"))


class _Attributed:
    """The lines of one container, and the position up to which they have been printed."""

    def __init__(self, who: Speaker, terminal: Terminal, tail: deque[str]) -> None:
        self._who = who
        self._terminal = terminal
        self._tail = tail
        self._last = ""
        self._at_last = 0
        """The number of lines with the last timestamp: several may have the same one."""
        self._skip = 0
        self._own_lines = False
        """Whether the launcher has marked a line as a rank's own."""

    def resume(self) -> str | None:
        """Prepares for a stream that starts at the last timestamp, and repeats the lines that have it."""
        self._skip = self._at_last
        return self._last or None

    def add(self, raw: str) -> None:
        stamp, _, text = raw.partition(" ")
        if stamp < self._last:
            return
        if stamp == self._last and self._skip:
            self._skip -= 1
            return
        self._at_last = self._at_last + 1 if stamp == self._last else 1
        self._last, self._skip = stamp, 0
        label, said = self._who.attribute(text)
        if said != text and not self._own_lines:  # a rank's last lines say more than its launcher's
            self._own_lines = True
            self._tail.clear()
        if said != text or not self._own_lines:
            self._tail.append(said)
        self._terminal.line(label, said)
