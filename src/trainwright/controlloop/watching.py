"""List and watch as a state machine: `step(state, input) → state`, with every rule of recovery in one `match`.

    List ──Listed──▶ Watch ──Happened──▶ Watch …
     ▲ ▲               │ │
     │ └────Expired────┘ └─Ended/Failed──▶ Pause ──Elapsed──▶ Watch (from the last version seen)
     └──Elapsed── Pause ◀──Failed── List

Pure: no client, no clock. `informer` does what a state asks for and feeds back what happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import msgspec

FIRST_PAUSE = 0.8
LAST_PAUSE = 30.0
ABSENT_PAUSE = 5.0


class List(msgspec.Struct, frozen=True):
    """Ask for all objects. `failures` counts tries in a row that came to nothing."""

    failures: int = 0


class Watch(msgspec.Struct, frozen=True):
    """Ask for what happened after `version`."""

    version: str
    failures: int = 0


class Pause(msgspec.Struct, frozen=True):
    """Wait, then go on with `then`. `absent`: the type is not served at all, so the store is complete: empty."""

    seconds: float
    then: List | Watch
    absent: bool = False


State = List | Watch | Pause


class Listed(msgspec.Struct, frozen=True):
    version: str


class Happened(msgspec.Struct, frozen=True):
    """An event or a bookmark. Both carry the version to go on from."""

    version: str


class Steady(msgspec.Struct, frozen=True):
    """The stream has been open for a while: whatever ends it now is not the failure before."""


class Ended(msgspec.Struct, frozen=True):
    """The server ended the stream, as it does every few minutes."""


class Elapsed(msgspec.Struct, frozen=True):
    """A pause is over."""


class Expired(msgspec.Struct, frozen=True):
    """410, as a status or as an ERROR event: the version is too old."""


class Absent(msgspec.Struct, frozen=True):
    """404 for the whole type: its CRD is not installed, or not any more."""


class Failed(msgspec.Struct, frozen=True):
    """Anything else: a refused connection, a reset, an idle stream, 429, 5xx."""

    retry_after: float = 0.0


Input = Listed | Happened | Steady | Ended | Elapsed | Expired | Absent | Failed
Jitter = Callable[[], float]  # uniform in [0, 1)


def step(state: State, happened: Input, jitter: Jitter) -> State:
    """The next state. Inputs that a state cannot produce leave it as it is."""
    match state, happened:
        case (List(failures), Listed(version)):
            return Watch(version, failures)  # a list is no proof yet: its version may be refused by the watch
        case (List(failures), Expired()):  # a page's token grew too old: from the first page again
            return Pause(_pause(failures, jitter), List(failures + 1)) if failures else List(1)
        case (List(failures), Failed(retry_after)):
            return Pause(max(retry_after, _pause(failures, jitter)), List(failures + 1))
        case (List() | Watch(), Absent()):
            return Pause(ABSENT_PAUSE * (1 + 0.2 * jitter()), List(), absent=True)
        case (Watch(), Happened(version)):
            return Watch(version or state.version)
        case (Watch(), Steady()):
            return Watch(state.version)
        case (Watch(failures=0), Expired()):
            return List(1)  # at once, the first time
        case (Watch(failures=failures), Expired()):
            return Pause(_pause(failures, jitter), List(failures + 1))
        case (Watch(version, 0), Ended()):
            return Watch(version, 1)  # at once, the first time
        case (Watch(version, failures), Ended()):
            return Pause(_pause(failures, jitter), Watch(version, failures + 1))
        case (Watch(version, failures), Failed(retry_after)):
            return Pause(max(retry_after, _pause(failures, jitter)), Watch(version, failures + 1))
        case (Pause(), Elapsed()):
            return state.then
        case ((List() | Watch() | Pause()), _):
            return state
        case _ as never:
            assert_never(never)


def _pause(failures: int, jitter: Jitter) -> float:
    """Twice as long each time, up to half a minute, spread so that many watchers do not come back together."""
    return min(LAST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10)) * (1.0 + jitter())
