"""List and watch as a state machine: `step(state, input) → state`, with all recovery rules in one `match`.

    List ──Listed──▶ Watch ──Happened──▶ Watch …
     ▲ ▲               │ │
     │ └────Expired────┘ └─Ended/Failed──▶ Pause ──Elapsed──▶ Watch (from the last version seen)
     └──Elapsed── Pause ◀──Failed── List

Pure: no client, no clock. `informer` carries out each state and passes the result back as an input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import msgspec

FIRST_PAUSE = 0.8
LAST_PAUSE = 30.0
ABSENT_PAUSE = 5.0
AWAY_PAUSE = 2.0


class List(msgspec.Struct, frozen=True):
    """List all objects. `failures` counts failed attempts in a row."""

    failures: int = 0


class Watch(msgspec.Struct, frozen=True):
    """Watch for changes after `version`."""

    version: str
    failures: int = 0


class Pause(msgspec.Struct, frozen=True):
    """Wait, then continue with `then`. `absent`: the type is not served, so the store is complete and empty."""

    seconds: float
    then: List | Watch
    absent: bool = False


State = List | Watch | Pause


class Listed(msgspec.Struct, frozen=True):
    version: str


class Happened(msgspec.Struct, frozen=True):
    """An event or a bookmark, with the version to continue from."""

    version: str


class Steady(msgspec.Struct, frozen=True):
    """The watch has been open for a while: its end is not a repetition of the earlier failure."""


class Ended(msgspec.Struct, frozen=True):
    """The server ended the stream, as it does every few minutes."""


class Elapsed(msgspec.Struct, frozen=True):
    """A pause is over."""


class Expired(msgspec.Struct, frozen=True):
    """410, as a status or as an ERROR event: the version is too old."""


class Absent(msgspec.Struct, frozen=True):
    """404 for the whole type: its CRD is not installed."""


class Failed(msgspec.Struct, frozen=True):
    """Anything else: a refused connection, a reset, an idle stream, 429, 5xx."""

    retry_after: float = 0.0
    away: bool = False
    """Nobody answered: there is no load to spare, and who comes back wants to be seen soon."""
    back: bool = False
    """Somebody answered, for the first time since nobody did: what failed before was an outage, and does not count. A
    kube-apiserver that has just started forbids everything until it has read its roles.
    """


Input = Listed | Happened | Steady | Ended | Elapsed | Expired | Absent | Failed
Jitter = Callable[[], float]  # uniform in [0, 1)


def step(state: State, happened: Input, jitter: Jitter) -> State:
    """The next state. Inputs that a state cannot produce leave it as it is."""
    match state, happened:
        case (List(failures), Listed(version)):
            return Watch(version, failures)  # failures stay until the watch works: it may refuse the list's version
        case (List(failures), Expired()):  # a page's token was too old: start again with the first page
            return Pause(_pause(failures, jitter), List(failures + 1)) if failures else List(1)
        case (List(failures), Failed(away=True)):
            return Pause(min(AWAY_PAUSE, _pause(failures, jitter)), List(failures + 1))
        case (List(failures), Failed(retry_after, back=back)):
            failures = 0 if back else failures
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
        case (Watch(version, failures), Failed(away=True)):
            return Pause(min(AWAY_PAUSE, _pause(failures, jitter)), Watch(version, failures + 1))
        case (Watch(version, failures), Failed(retry_after, back=back)):
            failures = 0 if back else failures
            return Pause(max(retry_after, _pause(failures, jitter)), Watch(version, failures + 1))
        case (Pause(), Elapsed()):
            return state.then
        case ((List() | Watch() | Pause()), _):
            return state
        case _ as never:
            assert_never(never)


def _pause(failures: int, jitter: Jitter) -> float:
    """The back-off: doubled each time up to half a minute, and spread, so that many watchers do not return together."""
    return min(LAST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10)) * (1.0 + jitter())
