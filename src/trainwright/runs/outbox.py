"""The outbox: TrainJobs that were submitted and are not known to be in their cluster yet, as plain files.

    outbox/00000007-mnist-x1y2z3.json   one submission, 0600, on disk before anybody is told that it is accepted
    outbox/lock                         held by whoever puts, delivers or removes

In: submissions, in order. Out: the same, in order, until somebody says that one was delivered or refused. A file is
whole or not there; a crash at any point leaves a submission in the outbox or out of it, never half of it. Who delivers
asks the cluster first: the run's id, which the TrainJob carries, tells an earlier delivery of ours from a stranger's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trainwright.runs import files
from trainwright.schema.jsonobject import Json

try:
    import fcntl
except ImportError:  # not on Windows, where one person's commands are not kept apart
    fcntl = None  # type: ignore[assignment]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One submission."""

    run: str
    """The run's id; the TrainJob has it as an annotation."""
    submitted: str
    target: str
    """The cluster that it is for."""
    namespace: str
    source: str = ""
    """What the user typed."""
    job: Json
    companions: list[Json] = []
    belongings: list[Json] = []
    """Objects of this run alone, which its TrainJob will own."""
    replaces: bool = False
    """Whether a finished TrainJob of the same name makes room for it."""
    environment: dict[str, str] | None = None
    """The caller's variables, for a run of a program on the local cluster."""
    workdir: str = ""
    python: str = ""
    file: str = ""
    """The name of its file; not written."""


class Outbox:
    def __init__(self, state: Path) -> None:
        self.path = state / "outbox"

    def put(self, entry: Entry) -> None:
        """Keeps a submission. When this returns, it is on disk."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.locked(self.path / "numbers"):
            last = max((int(name.partition("-")[0]) for name in self._names()), default=0)
            files.replace(self.path / f"{last + 1:08d}-{entry.run}.json", _encode(entry))
            self._sync()

    def waiting(self, target: str | None = None) -> list[Entry]:
        """What waits, oldest first; for one cluster, or for all."""
        found = []
        for name in self._names():
            try:
                entry = msgspec.json.decode((self.path / name).read_bytes(), type=Entry)
            except FileNotFoundError:
                continue  # delivered by somebody else meanwhile
            if target in (None, entry.target):
                found.append(msgspec.structs.replace(entry, file=name))
        return found

    def holds(self, run: str) -> bool:
        """Whether this run waits."""
        return any(name.partition("-")[2] == f"{run}.json" for name in self._names())

    def remove(self, entry: Entry) -> None:
        """It was delivered, or refused for good."""
        (self.path / entry.file).unlink(missing_ok=True)
        self._sync()

    def withdraw(self, run: str) -> None:
        """The user does not want it any more. What is being delivered at this moment may be there already."""
        for entry in self.waiting():
            if entry.run == run:
                self.remove(entry)

    @contextmanager
    def delivering(self) -> Iterator[bool]:
        """Whether this process is the one that delivers; another one may be at it."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield _try_lock(handle)
        finally:
            os.close(handle)

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.path) if name.endswith(".json") and name[:8].isdecimal())
        except FileNotFoundError:
            return []

    def _sync(self) -> None:
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _encode(entry: Entry) -> bytes:
    return msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(entry, file="")), indent=2) + b"\n"


def _try_lock(handle: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
