"""The output of a run, read from its directory: every pod, container, attempt and line, with no cluster up.

In: the directory of a run. Out: `LogFile`s (one for each start of each container), and their `Line`s, merged by time.
The files are in CRI's line format: `time stream F|P text`, where parts (`P`) are the beginning of the next line.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainwright.runs.directory import RunDirectory
from trainwright.runs.pods import read_pod, write_pod
from trainwright.schema.jsonobject import Json

_ROLE_LABELS = (
    "jobset.sigs.k8s.io/replicatedjob-name",
    "jobset.sigs.k8s.io/job-index",
    "batch.kubernetes.io/job-completion-index",
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """The output of one start of one container. `attempt` counts the starts of this container of this node, from 1."""

    pod: Json
    container: str
    attempt: int
    path: Path

    @property
    def pod_name(self) -> str:
        return str(self.pod["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Line:
    """One line that a container wrote. `time` is RFC 3339 with nanoseconds; such texts sort as times."""

    source: LogFile
    time: str
    stream: str
    text: str


def log_files(run: RunDirectory) -> list[LogFile]:
    """All logs of a run, in the order in which they began."""
    found: list[tuple[str, Json, str, Path]] = []
    if run.logs.is_dir():
        for directory in sorted(child for child in run.logs.iterdir() if child.is_dir() and not child.is_symlink()):
            pod = read_pod(directory)
            for path in sorted(directory.glob("*/*.log")):
                if path.stem.isdecimal():
                    found.append((_begin(path), pod, path.parent.name, path))
    found.sort(key=lambda item: (item[0], item[3]))
    attempts: dict[tuple[str, ...], int] = {}
    result = []
    for _, pod, container, path in found:
        who = (*_role(pod), container)
        attempts[who] = attempts.get(who, 0) + 1
        result.append(LogFile(pod, container, attempts[who], path))
    return result


def read(source: LogFile) -> Iterator[Line]:
    """The lines of one log, in order. A last line without an end is a line too."""
    parts: list[str] = []
    stamp = stream = ""
    for record in _records(source.path):
        pieces = record.split(b" ", 3)
        if len(pieces) < 4:  # cut off by a crash of the machine
            continue
        if not parts:
            stamp, stream = pieces[0].decode(errors="replace"), pieces[1].decode(errors="replace")
        parts.append(pieces[3].decode("utf-8", "replace"))
        if pieces[2] != b"P":
            yield Line(source, stamp, stream, "".join(parts))
            parts = []
    if parts:
        yield Line(source, stamp, stream, "".join(parts))


def merged(sources: Iterable[LogFile]) -> Iterator[Line]:
    """The lines of many logs in the order of their times; lines of one log keep their own order."""
    return heapq.merge(*map(read, sources), key=lambda line: line.time)


class LogWriter:
    """Writes the lines that a command saw of a run on another cluster, in the form in which a node writes its own.

    `with` it: leaving closes its files. What is appended is in the file when `append` returns.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._open: dict[Path, BinaryIO] = {}

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def append(self, pod: Json, container: str, restart: int, time: str, text: str) -> None:
        if "/" in container or container in ("", ".", ".."):
            raise ValueError(f"{container!r} cannot name the log of a container")
        logs = self._run.logs_of(pod["metadata"]["name"], pod["metadata"]["uid"])
        path = logs / container / f"{restart}.log"
        file = self._open.get(path)
        if file is None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_pod(logs, pod)
            file = self._open[path] = path.open("ab", buffering=0)
        file.write(f"{time} stdout F {text}\n".encode())


def _role(pod: Json) -> tuple[str, ...]:
    """What the pod is in its job: the same for the pod that takes its place in the next attempt."""
    labels = pod["metadata"].get("labels") or {}
    role = tuple(str(labels.get(label, "")) for label in _ROLE_LABELS)
    return role if any(role) else (str(pod["metadata"]["name"]),)


def _records(path: Path) -> Iterator[bytes]:
    """The whole records of a log, from its oldest file to its newest."""
    rest = b""
    for file in reversed(list(_files(path))):
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield rest + line[:-1]
                    rest = b""
                else:
                    rest += line


def _files(path: Path) -> Iterator[Path]:
    yield path
    for number in itertools.count(1):
        older = path.with_name(f"{path.name}.{number}")
        if not older.exists():
            return
        yield older


def _begin(path: Path) -> str:
    """The time of the first record; a log without any comes first."""
    for record in _records(path):
        return record.split(b" ", 1)[0].decode(errors="replace")
    return ""
