"""The lines of a run that are kept in its directory, with their ranks: for runs that are over and pods that are gone.

In: the run's directory. Out: what was said, by container or merged in the order of time.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator

from trainwright.cli.logs.assembly import Line
from trainwright.cli.logs.audience import Said
from trainwright.pipeline.reasons.ranks import speaker
from trainwright.runs import RunDirectory
from trainwright.runs.logs import LogFile, log_files, read
from trainwright.runs.screenline import shown
from trainwright.schema.jsonobject import Json

ContainerKey = tuple[str, str, int]
"""The pod's uid, the container's name, and how often it was started again in this pod."""


def said(files: list[LogFile]) -> Iterator[Said]:
    """What the containers said, in the order of time. Lines of one container keep their own order."""
    return heapq.merge(*map(_said, files), key=lambda line: line.time)


def _said(file: LogFile) -> Iterator[Said]:
    who, pod = speaker(file.pod), file.pod_name
    for line in read(file):
        label, rank, text, _ = who.attribute(shown(line.text))
        yield Said(line.time, pod, file.container, file.attempt, label, rank, text)


def attempt_before_last(files: list[LogFile]) -> list[LogFile]:
    """The logs of the last attempt but one; none when there was only one."""
    last = max((file.attempt for file in files), default=1)
    return [file for file in files if file.attempt == last - 1]


def lines_of(run: RunDirectory, pod: Json, container: str, restart: int) -> Iterator[Line]:
    """The lines of one container of one pod; none when its log is not kept here."""
    path = run.logs_of(pod["metadata"]["name"], pod["metadata"]["uid"]) / container / f"{restart}.log"
    if path.exists():
        for line in read(LogFile(pod, container, 1, path)):
            yield Line(line.time, shown(line.text))


def others(run: RunDirectory, known: Container[ContainerKey]) -> Iterator[tuple[Json, str, int]]:
    """The containers that have a log and are not known: pod, name, restarts."""
    for file in log_files(run):
        restart = int(file.path.stem)
        uid = str(file.pod["metadata"].get("uid") or "")
        if (uid, file.container, restart) not in known:
            yield file.pod, file.container, restart
