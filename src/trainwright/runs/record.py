"""The record of a run: what it was, who asked for it, where it stands and how it ended.

In: the text of a `run.json`, of this version or of another. Out: a `Record`, or `BrokenRecord` with the reason. Reading
tolerates unknown, missing and null fields. Invariant: an end is a latch (`ended_as`): a finished record keeps its end.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from trainwright.api.times import seconds_of

LOCAL: Final = "local"
"""The context of runs on the local cluster."""


class State(StrEnum):
    """What a run does, or how it ended."""

    SUBMITTING = "Submitting"
    """Recorded; its TrainJob is not known to exist yet."""
    WAITING = "Waiting"
    """Its TrainJob waits for something outside, such as a quota."""
    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"
    DELETED = "Deleted"
    """Its TrainJob was deleted before it ended."""
    LOST = "Lost"
    """Nobody can know how it ended."""


FINISHED: Final = frozenset([State.COMPLETE, State.FAILED, State.DELETED, State.LOST])

NOT_SUBMITTED: Final = "NotSubmitted"
"""The reason of a run whose TrainJob was never created, as far as anybody knows."""


class BrokenRecord(Exception):
    """A record that cannot be read; `id` names the run."""

    def __init__(self, id: str, why: str) -> None:
        super().__init__(f"the record of run {id} cannot be read: {why}")
        self.id = id
        self.why = why


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last report of the training code."""

    time: str | None = None
    step: int | None = None
    total: int | None = None
    percent: int | None = None
    remaining_seconds: int | None = None
    metrics: dict[str, str | float] | None = None


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody asked the run to end or to pause: the words for its record."""

    by: str
    """Such as `trainwright delete` or `Ctrl-C`."""
    time: str | None = None


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Times are RFC 3339 text."""

    id: str = ""
    name: str = ""
    namespace: str = "default"
    uid: str = ""
    """The TrainJob's; empty until it is created."""
    context: str = LOCAL
    """`local`, or the context of the kubeconfig."""
    server: str = ""
    source: str = ""
    """The script, the file or the command line."""
    workdir: str = ""
    python: str = ""
    runtime: str = ""
    nodes: int | None = None
    procs: int | str | None = None
    created: str | None = None
    started: str | None = None
    """When its first pod ran."""
    ended: str | None = None
    state: str = State.SUBMITTING
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    attempts: int = 0
    """How often its pods were started: 1 without any restart."""
    progress: Progress | None = None
    version: str = ""
    """Of Trainwright."""
    origin: str = ""
    """Who submitted it: run, kubectl or sdk."""
    pid: int | None = None
    """Of the `trainwright run` that submitted it."""
    asked: Asked | None = None
    serial: int = 0
    """Counts the runs of a state directory: which of two came first, where their times are equal."""

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED

    @property
    def is_local(self) -> bool:
        return self.context == LOCAL

    @property
    def created_seconds(self) -> float | None:
        """Seconds since the epoch; None when the record does not say."""
        return seconds_in(self.created)

    @property
    def ended_seconds(self) -> float | None:
        return seconds_in(self.ended)

    def ended_as(
        self, state: State, when: str, *, reason: str = "", message: str = "", exit_code: int | None = None
    ) -> Record:
        """The record with this end. One that has an end already keeps it."""
        if self.is_finished:
            return self
        return msgspec.structs.replace(
            self, state=state, ended=when, reason=reason, message=message, exit_code=exit_code, pid=None
        )


def seconds_in(text: str | None) -> float | None:
    """The instant of a time in a record, which may hold any text."""
    try:
        return seconds_of(text) if text else None
    except ValueError:
        return None


def decode(id: str, text: bytes) -> Record:
    """The record in the text. Raises `BrokenRecord`."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BrokenRecord(id, str(error)) from None
    if not isinstance(value, dict):
        raise BrokenRecord(id, "it is not a JSON object")
    try:
        return msgspec.structs.replace(msgspec.convert(_without_nulls(value), Record), id=id)
    except msgspec.ValidationError as error:
        raise BrokenRecord(id, str(error)) from None


def encode(record: Record) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
