"""All runs of one state directory: made, claimed by their TrainJobs, changed, found, deleted.

Who writes: `trainwright run` creates a record before it creates the TrainJob; the local cluster's node and recorder
claim it for the TrainJob's uid, or make one for a TrainJob that has none. Every change happens under one file lock, so
none of them overwrites another's. A run that is deleted is listed in `deleted.jsonl`, so that nobody makes it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trainwright.api.runid import derived_id, fresh_suffix, is_run_id
from trainwright.api.times import rfc3339
from trainwright.runs import files, record
from trainwright.runs.directory import RunDirectory
from trainwright.runs.record import NOT_SUBMITTED, Asked, BrokenRecord, Record, State

LEFT_OVER_SECONDS = 3600.0
"""After so long, a directory that was being made belongs to a process that died."""
DAY = 86400.0


class RunExists(Exception):
    """There is a run of this id already."""


class Deletion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of `deleted.jsonl`."""

    id: str
    name: str = ""
    uid: str = ""
    time: str = ""
    why: str = ""
    size: int = 0


class RunsHome:
    """The runs of a state directory. Nothing is created before the first run is."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.path = state / "runs"
        self._lock_file = self.path / ".lock"
        self._deletions = self.path / "deleted.jsonl"
        self._serial_file = self.path / ".serial"

    def of(self, id: str) -> RunDirectory:
        """The directory of a run, which need not exist. Raises `ValueError` for what is no id."""
        return RunDirectory(self.path, id)

    # Reading

    def read(self, id: str) -> Record | None:
        """The record of a run, None when there is none. Raises `BrokenRecord`."""
        directory = self.of(id)
        try:
            return record.decode(id, directory.record.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            if directory.path.is_dir():
                raise BrokenRecord(id, "there is no run.json") from None
            return None
        except OSError as error:
            raise BrokenRecord(id, error.strerror or str(error)) from None

    def all(self) -> list[Record | BrokenRecord]:
        """All runs, newest first; those that cannot be read come last."""
        whole: list[Record] = []
        broken: list[BrokenRecord] = []
        for id in self.ids():
            try:
                found = self.read(id)
            except BrokenRecord as error:
                broken.append(error)
            else:
                if found is not None:
                    whole.append(found)
        return [*sorted(whole, key=lambda run: (run.created or "", run.serial), reverse=True), *broken]

    def records(self) -> list[Record]:
        """The runs whose records can be read, newest first."""
        return [found for found in self.all() if isinstance(found, Record)]

    def find(self, name_or_id: str, namespace: str | None = None) -> Record | None:
        """The run of this id, else the newest run of the TrainJob of this name. Raises `BrokenRecord`."""
        if is_run_id(name_or_id) and (found := self.read(name_or_id)) is not None:
            return found
        for run in self.records():
            if run.name == name_or_id and namespace in (None, run.namespace):
                return run
        return None

    def deletions(self) -> list[Deletion]:
        """The runs that were deleted, oldest first."""
        found = []
        try:
            lines = self._deletions.read_bytes().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=Deletion))
            except msgspec.DecodeError:  # a line that a crash cut off
                continue
        return found

    # Writing

    def create(self, run: Record, *, documents: str = "", environment: Mapping[str, str] | None = None) -> RunDirectory:
        """Makes the home of a new run, whole or not at all. Raises `RunExists`."""
        with self._locked():
            self._create(run, documents, environment)
            return self.of(run.id)

    def update(self, id: str, change: Callable[[Record], Record]) -> Record | None:
        """Changes a record and returns it; None when the run is deleted. Raises `BrokenRecord`."""
        if not self.of(id).path.is_dir():
            return None
        with self._locked():
            present = self.read(id)
            if present is None:
                return None
            changed = change(present)
            if changed != present:
                files.replace(self.of(id).record, record.encode(changed))
            return changed

    def claim(self, wanted: Record, chosen: str | None) -> Record | None:
        """The run of a TrainJob on the local cluster: `wanted` says its name, namespace and uid.

        The run of the id that `run` chose, if that run is this TrainJob's: it has its uid, or none yet and its name.
        Else the run of the id that follows from name and uid, which is made if there is none. None when the user has
        deleted the run.
        """
        with self._locked():
            if any(gone.uid == wanted.uid for gone in self.deletions()):
                return None
            candidates = [derived_id(wanted.name, wanted.uid), derived_id(wanted.name, wanted.uid, letters=32)]
            if chosen is not None:
                candidates.insert(0, chosen)
            for id in filter(is_run_id, candidates):
                try:
                    present = self.read(id)
                except BrokenRecord:
                    continue
                if present is None:
                    return self._create(msgspec.structs.replace(wanted, id=id), "", None)
                if (claimed := _claimed(present, wanted)) is not None:
                    if claimed != present:
                        files.replace(self.of(id).record, record.encode(claimed))
                    return claimed
            return None

    def ask(self, id: str, asked: Asked) -> Record | None:
        """Notes who asks the run to end or to pause, so that its record can say why it did."""
        return self.update(id, lambda run: run if run.is_finished else msgspec.structs.replace(run, asked=asked))

    def ask_trainjob(self, namespace: str, name: str, asked: Asked) -> None:
        """The same for the unfinished runs of a TrainJob on the local cluster. What is asked for does not fail because
        nobody could note it.
        """
        for run in self.records():
            if run.is_local and (run.namespace, run.name) == (namespace, name) and not run.is_finished:
                try:
                    self.ask(run.id, asked)
                except (OSError, BrokenRecord):
                    continue

    @contextmanager
    def followed(self, id: str) -> Iterator[None]:
        """While inside, the run's directory shows that this process follows it.

        A process that leaves by an exception, or dies, leaves the mark behind: see `abandoned`.
        """
        mark = self.of(id).following
        with files.locked(mark):
            yield
            mark.unlink(missing_ok=True)

    def abandoned(self) -> list[Record]:
        """The runs that nobody follows any more without having said so, newest first."""
        found = []
        for id in self.ids():
            directory = self.of(id)
            if directory.following.exists() and not directory.is_followed:
                try:
                    found.append(self.read(id))
                except BrokenRecord:
                    continue
        return sorted(filter(None, found), key=lambda run: (run.created or "", run.id), reverse=True)

    def acknowledge(self, id: str) -> None:
        """Somebody has been told that the run is not followed any more."""
        self.of(id).following.unlink(missing_ok=True)

    def forget_environment(self, id: str) -> None:
        """Removes the caller's environment from the run's directory."""
        self.of(id).environment.unlink(missing_ok=True)

    # Deleting

    def delete(self, id: str, why: str, now: float) -> bool:
        """Deletes a run with everything in its directory. False when there is none."""
        if not os.path.lexists(self.of(id).path):
            return False
        with self._locked():
            return self._delete(id, why, now) is not None

    def prune(self, limit_bytes: int, limit_days: float, now: float) -> list[Deletion]:
        """Deletes finished runs that ended more than `limit_days` ago, then the oldest finished ones until all runs
        together have at most `limit_bytes`. Returns what was deleted, for the caller to say.
        """
        if not self.path.is_dir():
            return []
        gone: list[Deletion] = []
        with self._locked():
            self._sweep(now)
        sizes = {id: self.of(id).size() for id in self.ids()}  # outside the lock: there may be many files
        total = sum(sizes.values())
        for run in sorted((run for run in self.records() if run.is_finished), key=_end_of):
            if (now - _end_of(run)) / DAY > limit_days:
                why = f"it ended more than {limit_days:g} days ago"
            elif total > limit_bytes:
                why = f"all runs together took {_megabytes(total)} of {_megabytes(limit_bytes)}"
            else:
                continue
            with self._locked():
                # A run that was thought never to have been submitted may have been taken back.
                deleted = self._delete(run.id, why, now) if self._is_finished(run.id) else None
            if deleted is not None:
                total -= sizes.get(run.id, 0)
                gone.append(deleted)
        return gone

    # Parts

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.locked(self._lock_file):
            yield

    def ids(self) -> list[str]:
        """The ids of all runs, in no order."""
        try:
            with os.scandir(self.path) as entries:
                return [
                    entry.name for entry in entries if is_run_id(entry.name) and entry.is_dir(follow_symlinks=False)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _create(self, run: Record, documents: str, environment: Mapping[str, str] | None) -> Record:
        directory = self.of(run.id)
        if os.path.lexists(directory.path):
            raise RunExists(f"there is a run {run.id} already, in {directory.path}")
        run = msgspec.structs.replace(run, serial=self._next_serial())
        making = self.path / f".new-{run.id}-{fresh_suffix()}"
        making.mkdir(mode=0o700)
        (making / directory.output.name).mkdir(mode=0o700)
        (making / directory.logs.name).mkdir(mode=0o700)
        files.write_new(making / directory.record.name, record.encode(run))
        if documents:
            files.write_new(making / directory.trainjob.name, documents.encode(), durable=False)
        if environment is not None:
            content = msgspec.json.encode(dict(environment))
            files.write_new(making / directory.environment.name, content, durable=False)
        os.rename(making, directory.path)
        return run

    def _next_serial(self) -> int:
        try:
            last = int(self._serial_file.read_bytes())
        except (FileNotFoundError, ValueError):
            last = max((run.serial for run in self.records()), default=0)
        files.replace(self._serial_file, b"%d" % (last + 1), durable=False)
        return last + 1

    def _is_finished(self, id: str) -> bool:
        try:
            run = self.read(id)
        except BrokenRecord:
            return False
        return run is not None and run.is_finished

    def _delete(self, id: str, why: str, now: float) -> Deletion | None:
        directory = self.of(id)
        try:
            run = self.read(id)
        except BrokenRecord:
            run = Record(id=id)
        if run is None:
            return None
        gone = Deletion(id, run.name, run.uid, rfc3339(now), why, directory.size())
        # First the line, then the directory: a run is never gone without a word.
        files.append_line(self._deletions, msgspec.json.encode(gone))
        moved = self.path / f".deleted-{id}-{fresh_suffix()}"
        os.rename(directory.path, moved)
        _remove(moved)
        return gone

    def _sweep(self, now: float) -> None:
        """Removes what processes that died have left of runs that were being made or deleted."""
        for left in [*self.path.glob(".deleted-*"), *self.path.glob(".new-*")]:
            try:
                if left.name.startswith(".new-") and now - left.lstat().st_mtime < LEFT_OVER_SECONDS:
                    continue
            except FileNotFoundError:
                continue
            _remove(left)


def _remove(directory: Path) -> None:
    import shutil  # with every form of compression it knows; most commands delete nothing

    shutil.rmtree(directory, ignore_errors=True)


def _claimed(present: Record, wanted: Record) -> Record | None:
    """The record as this TrainJob's, or None when it is another's."""
    if not present.is_local:
        return None
    if present.uid:
        return present if present.uid == wanted.uid else None
    if (present.namespace, present.name) != (wanted.namespace, wanted.name):
        return None
    if present.is_finished and present.reason != NOT_SUBMITTED:
        return None
    # Its TrainJob exists after all: whoever said that it was never submitted could not know better.
    return msgspec.structs.replace(
        present, uid=wanted.uid, state=State.PENDING, ended=None, reason="", message="", exit_code=None
    )


def _end_of(run: Record) -> float:
    """When a finished run ended, in seconds since the epoch. One that does not say is the oldest."""
    return run.ended_seconds or run.created_seconds or 0.0


def _megabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
