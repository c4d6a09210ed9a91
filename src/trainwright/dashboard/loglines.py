"""The output of a TrainJob's ranks, as it is written: kept attempts first, then the pods that are there, followed.

In: the pods of a picture, and the directory of the run where it is on this machine. Out: batches of lines, each with
its rank, its time, and the text that a terminal would show; and, for each container, the line that is not finished
yet, such as a progress bar that is drawn again and again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator

from trainwright.client.client import Client
from trainwright.client.errors import ApiError, ClientError, Forbidden, NotFound
from trainwright.dashboard.picture import Key, Picture
from trainwright.dashboard.viewer import Viewer
from trainwright.pipeline.reasons.evidence import container_statuses
from trainwright.pipeline.reasons.ranks import Speaker, speaker
from trainwright.runs import RunDirectory
from trainwright.runs.logs import LogFile, log_files, merged
from trainwright.runs.screenline import settled, shown
from trainwright.schema.jsonobject import Json

TAIL = 2000
"""Lines of each container that is followed, and of all kept ones together."""
BATCH_SECONDS = 0.15
FIRST_SECONDS = 0.5
"""For the lines that are there already, so that those of all ranks come in the order of their times."""
RETRY_SECONDS = 1.0
LONGEST = 16 * 1024
MOST_WAITING = 20000

Line = tuple[str, str, str]
"""Rank, time, text."""


class Follower:
    """Follows every container of a TrainJob that has started. `async with`, then read `batches`."""

    def __init__(self, viewer: Viewer, picture: Picture, key: Key, run: RunDirectory | None) -> None:
        self._viewer = viewer
        self._picture = picture
        self._key = key
        self._run = run
        self._streams: dict[tuple[str, str, int], asyncio.Task[None]] = {}
        self._lines: deque[Line] = deque()
        self._open: dict[str, Line | None] = {}
        self._problems: list[str] = []
        self._dropped = 0

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._streams.values():
            task.cancel()
        await asyncio.gather(*self._streams.values(), return_exceptions=True)

    async def batches(self) -> AsyncIterator[Json | None]:
        """What is new, several times a second; None when nothing is."""
        pods = {pod["metadata"]["uid"] for pod in self._picture.pods(self._key)}
        kept = await asyncio.to_thread(_kept, self._run, pods) if self._run is not None else []
        yield {"lines": kept, "open": {}, "first": True}
        with self._picture.feed() as feed:
            pause = FIRST_SECONDS
            while True:
                if feed.news.is_set():
                    feed.news.clear()
                    self._follow_pods()
                await asyncio.sleep(pause)
                pause = BATCH_SECONDS
                if not (self._lines or self._open or self._problems):
                    yield None
                    continue
                batch: Json = {"lines": sorted(self._lines, key=lambda line: line[1]), "open": self._open}
                if self._problems:
                    batch["problem"] = self._problems[-1]
                if self._dropped:
                    batch["dropped"], self._dropped = self._dropped, 0
                self._lines.clear()
                self._problems, self._open = [], {}
                yield batch

    def _follow_pods(self) -> None:
        for pod in self._picture.pods(self._key):
            for container in container_statuses(pod):
                state = container.get("state") or {}
                mark = (pod["metadata"]["uid"], str(container.get("name")), int(container.get("restartCount") or 0))
                if mark not in self._streams and ("running" in state or "terminated" in state):
                    name = f"log of {pod['metadata']['name']}/{mark[1]}"
                    self._streams[mark] = asyncio.create_task(self._stream(pod, mark[1]), name=name)

    async def _stream(self, pod: Json, container: str) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        source, since = _Source(speaker(pod), f"{name}/{container}"), None
        while True:
            try:
                async with self._viewer.client() as client:
                    await self._read(client, name, namespace, container, source, since)
                return
            except Forbidden as error:
                self._problems.append(str(error))
                return
            except (NotFound, ApiError):
                return  # the pod is gone, or has no log
            except ClientError:
                since = source.last or None
                await asyncio.sleep(RETRY_SECONDS)

    async def _read(
        self, client: Client, pod: str, namespace: str, container: str, source: _Source, since: str | None
    ) -> None:
        after = source.last
        async with client.logs(
            pod, namespace, container=container, follow=True, timestamps=True, tail_lines=None if since else TAIL,
            since_time=since,
        ) as stream:  # fmt: skip
            async for chunk in stream.chunks():
                for line in source.take(chunk):
                    if line[1] > after:
                        self._put(line)
                self._open[source.name] = source.open_line()
                if len(self._lines) > MOST_WAITING // 2:  # whoever reads slowly slows down the stream
                    await asyncio.sleep(2 * BATCH_SECONDS)
        for line in source.end():
            self._put(line)
        self._open[source.name] = None

    def _put(self, line: Line) -> None:
        if len(self._lines) >= MOST_WAITING:
            self._lines.popleft()
            self._dropped += 1
        self._lines.append(line)


class _Source:
    """One container's stream of bytes, cut into lines with their times and ranks."""

    def __init__(self, who: Speaker, name: str) -> None:
        self.name = name
        self.last = ""
        """The time of the last line."""
        self._who = who
        self._rest = ""

    def take(self, chunk: bytes) -> Iterator[Line]:
        *lines, rest = (self._rest + chunk.decode("utf-8", "replace")).split("\n")
        for line in lines:
            yield self._line(line)
        self._rest = rest if len(rest) < LONGEST else self._settled(rest)

    def end(self) -> Iterator[Line]:
        if self._rest:
            yield self._line(self._rest)
        self._rest = ""

    def open_line(self) -> Line | None:
        """The line that has no end yet."""
        if not self._rest.partition(" ")[2]:
            return None
        self._rest = self._settled(self._rest)
        stamp, _, text = self._rest.partition(" ")
        return self._attributed(stamp, text)

    def _line(self, line: str) -> Line:
        stamp, _, text = line.partition(" ")
        self.last = stamp
        return self._attributed(stamp, text)

    def _attributed(self, stamp: str, text: str) -> Line:
        said = self._who.attribute(text)
        return said.label, stamp, shown(said.text)[:LONGEST]

    @staticmethod
    def _settled(rest: str) -> str:
        stamp, _, text = rest.partition(" ")
        return f"{stamp} {settled(text)}"[: 4 * LONGEST]


def _kept(run: RunDirectory, present: set[str]) -> list[Line]:
    """The last lines of the pods that are not there any more."""
    gone = [source for source in log_files(run) if source.pod["metadata"].get("uid") not in present]
    return list(last_lines(run, gone))


def last_lines(run: RunDirectory, sources: list[LogFile] | None = None, count: int = TAIL) -> Iterator[Line]:
    """The last lines that are kept of a run, merged by time."""
    chosen = log_files(run) if sources is None else sources
    speakers: dict[str, Speaker] = {}
    for line in deque(merged(chosen), maxlen=count):
        pod = line.source.pod
        who = speakers.setdefault(str(pod["metadata"]["name"]), speaker(pod))
        said = who.attribute(line.text)
        yield said.label, line.time, shown(said.text)[:LONGEST]
