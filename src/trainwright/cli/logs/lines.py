"""The output of all ranks, merged: one stream for each container of each pod, every line with its rank.

A stream follows its container to the end. When the connection to the API server breaks, it continues from the time of
the last line it read, so that no line is lost and none is read twice. Who hears the lines too slowly slows down the
streams: no more than a few blocks of each wait in memory.

A pod may be deleted before its last lines are read: where the run's directory is on this machine, they are read there.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque

from trainwright.cli.clusters.target import Target
from trainwright.cli.logs.assembly import Assembly, Line, Position
from trainwright.cli.logs.audience import Audience, Said
from trainwright.cli.logs.kept import ContainerKey, lines_of, others
from trainwright.cli.logs.selection import Selection
from trainwright.client.client import Client
from trainwright.client.errors import BadRequest, ClientError, NotFound
from trainwright.pipeline.reasons.harmless import comfort
from trainwright.pipeline.reasons.ranks import Speaker, speaker
from trainwright.runs import RunDirectory
from trainwright.runs.logs import LogWriter
from trainwright.schema.jsonobject import Json

TAIL = 20
BATCH = 1000
ALL = Selection()
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
RETRY_SECONDS = 0.3
TICK_SECONDS = 0.1


class LogLines:
    """Passes on the lines of the containers it follows. Leaving `async with` ends its streams."""

    def __init__(
        self,
        target: Target,
        namespace: str,
        audience: Audience,
        *,
        follow: bool = True,
        selection: Selection = ALL,
        client: Client | None = None,
        kept: RunDirectory | None = None,
        writer: LogWriter | None = None,
    ) -> None:
        """`client` has connections that can be used before others are made. `kept` is where the local node keeps the
        lines; `writer` keeps those of a run on another cluster.
        """
        self._target = target
        self._namespace = namespace
        self._audience = audience
        self._follow = follow
        self._selection = selection
        self._client = client
        self._kept = kept
        self._writer = writer
        self._streams: dict[ContainerKey, asyncio.Task[None]] = {}
        self._sources: dict[ContainerKey, Source] = {}
        self._may_speak = asyncio.Event()
        self._may_speak.set()
        self._ticker: asyncio.Task[None] | None = None
        self._heard_at = time.monotonic()
        self._is_last = not follow
        """Whether a stream that ends has all there is: the job is over, or only present lines are wanted."""

    def follow(self, pods: list[Json]) -> None:
        """Follows every container that has started and is not followed yet; a restarted one is followed anew."""
        for pod in pods:
            status = pod.get("status") or {}
            for container in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
                key = (pod["metadata"]["uid"], container["name"], container.get("restartCount") or 0)
                state = container.get("state") or {}
                is_there = key[2] > 0 if self._selection.previous else "running" in state or "terminated" in state
                if is_there and key not in self._streams:
                    self._sources[key] = source = Source(pod, container["name"], key[2])
                    self._audience.expect(sum(each.ranks for each in self._sources.values()))
                    self._streams[key] = asyncio.create_task(self._stream(source), name=f"log of {source.key}")
                if key in self._sources and "running" not in state:
                    self._sources[key].over.set()

    @property
    def is_empty(self) -> bool:
        """Whether there is no container to follow yet."""
        return not self._streams

    def tail(self, pod: str, container: str) -> list[str]:
        """The last lines of a container, of the rank itself where its launcher tells them apart."""
        found = [source for source in self._sources.values() if (source.pod, source.container) == (pod, container)]
        return list(found[-1].tail) if found else []

    @property
    def comforts(self) -> list[str]:
        """What to tell about lines that look like a failure, if the job completes: each sentence once."""
        return list(dict.fromkeys(source.comfort for source in self._sources.values() if source.comfort))

    def pause(self) -> None:
        """Passes on no more lines until `go_on`."""
        self._may_speak.clear()

    def go_on(self) -> None:
        self._may_speak.set()

    async def drain(self, idle_seconds: float | None = None) -> list[str]:
        """Waits until all streams have been read to the end, however long that takes while lines come.

        After `idle_seconds` without a line it gives up, and returns the labels of those that have not ended.
        """
        self._heard_at, self._is_last = time.monotonic(), True
        while open_ones := {key: stream for key, stream in self._streams.items() if not stream.done()}:
            left = None if idle_seconds is None else self._heard_at + idle_seconds - time.monotonic()
            if left is not None and left <= 0:
                return sorted({self._sources[key].label for key in open_ones})
            await asyncio.wait(open_ones.values(), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for stream in self._streams.values():
            stream.result()
        if self._kept is not None and self._follow:
            for pod, container, restart in others(self._kept, self._sources):
                await self._catch_up(Source(pod, container, restart))
        return []

    async def __aenter__(self) -> LogLines:
        self._ticker = asyncio.create_task(self._tick(), name="show what waits")
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._streams.values(), *([self._ticker] if self._ticker else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for source in self._sources.values():
            self._audience.hear_unfinished(source.key, None)
        self._audience.end()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._may_speak.is_set():
                self._audience.tick()

    async def _stream(self, source: Source) -> None:
        client = self._client
        while True:
            try:
                if client is not None:
                    await self._read(client, source)
                else:
                    async with Client.to(self._target.kubeconfig()) as client_now:  # its port may have changed
                        await self._read(client_now, source)
                if self._is_last or source.over.is_set():
                    break  # otherwise it was the server that ended the stream, and there is more to come
            except (NotFound, BadRequest):  # the pod is gone, or its container never started
                await self._catch_up(source)
                break
            except ClientError:
                client = None
                await asyncio.sleep(RETRY_SECONDS)
                continue
            try:
                async with asyncio.timeout(RETRY_SECONDS):
                    await source.over.wait()  # most likely it has ended, and its status comes in a moment
            except TimeoutError:
                pass
        self._audience.hear_unfinished(source.key, None)
        self._pass_on(source, source.assembly.end())

    async def _read(self, client: Client, source: Source) -> None:
        since = source.position.resume()
        async with client.logs(
            source.pod,
            self._namespace,
            container=source.container,
            follow=self._follow,
            timestamps=True,
            previous=self._selection.previous,
            since_time=since or self._selection.since,
            tail_lines=None if since else self._selection.tail,
        ) as stream:
            assembly = source.assembly = Assembly()
            async for chunk in stream.chunks():
                await self._may_speak.wait()
                if finished := assembly.feed(chunk):
                    self._audience.hear_unfinished(source.key, None)
                    self._pass_on(source, finished)
                unfinished = assembly.unfinished
                self._audience.hear_unfinished(source.key, source.said(unfinished) if unfinished.text else None)

    async def _catch_up(self, source: Source) -> None:
        """Reads on in the run's directory, where that is on this machine."""
        if self._kept is None:
            return
        source.position.resume()
        source.assembly = Assembly()  # an unfinished line is read again from its beginning
        lines = lines_of(self._kept, source.of, source.container, source.restart)
        while batch := list(itertools.islice(lines, BATCH)):
            await self._may_speak.wait()
            self._pass_on(source, batch)

    def _pass_on(self, source: Source, lines: list[Line]) -> None:
        self._heard_at = time.monotonic()
        new = [line for line in lines if source.position.is_new(line.time)]
        if self._writer is not None:
            for line in new:
                self._writer.append(source.of, source.container, source.restart, line.time, line.text)
        if new:
            self._audience.hear([source.hear(line) for line in new])


class Source:
    """One run of one container: who speaks, how far it has been read, and its last lines."""

    def __init__(self, pod: Json, container: str, restart: int) -> None:
        self.of = pod
        self.pod = str(pod["metadata"]["name"])
        self.container = container
        self.restart = restart
        self.attempt = restart + 1 + int((pod["metadata"].get("labels") or {}).get(RESTART_ATTEMPT) or 0)
        self.position = Position()
        self.assembly = Assembly()
        """The lines of the last connection."""
        self.over = asyncio.Event()
        """Set when the container has ended."""
        self.tail: deque[str] = deque(maxlen=TAIL)
        self.comfort: str | None = None
        """Why what its launcher says is no failure, if the job completes."""
        self._speaker: Speaker = speaker(pod)
        self._has_marks = False
        """Whether the launcher has marked a line as a rank's own."""

    @property
    def key(self) -> str:
        return f"{self.pod}/{self.container}/{self.restart}"

    @property
    def label(self) -> str:
        return self._speaker.label

    @property
    def ranks(self) -> int:
        """How many ranks may speak here; two stands for several."""
        return self._speaker.processes or 2

    def said(self, line: Line) -> Said:
        label, rank, text, _ = self._speaker.attribute(line.text)
        return Said(line.time, self.pod, self.container, self.attempt, label, rank, text)

    def hear(self, line: Line) -> Said:
        """The line with its rank. Remembers it as one of the last."""
        label, rank, text, is_marked = self._speaker.attribute(line.text)
        if is_marked and not self._has_marks:  # a rank's last lines say more than its launcher's
            self._has_marks = True
            self.tail.clear()
        if is_marked or not self._has_marks:
            self.tail.append(text)
        if not is_marked and (found := comfort(text)):
            self.comfort = found
        return Said(line.time, self.pod, self.container, self.attempt, label, rank, text)
