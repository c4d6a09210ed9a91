"""What a reconcile is about, and what it may end in.

A reconciler gets a `Key`, never an event: it reads the present, acts, and returns `Done()` or `After(seconds)`.
Anything it raises is a failure and comes back with growing delay; `client.errors` decide how it is logged (a conflict
is no news).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec


class Key(NamedTuple):
    """One object by name. Objects of the cluster have the namespace ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class NotYet(Exception):
    """Raised by a reconciler that has told the user why it cannot go on: come back with back-off, log one line.

    `within` bounds the back-off, for an object that has something else to be looked at for, such as a deadline.
    """

    def __init__(self, message: str, *, within: float | None = None) -> None:
        super().__init__(message)
        self.within = within


class Done(msgspec.Struct, frozen=True):
    """Nothing to do until something changes."""


class After(msgspec.Struct, frozen=True):
    """Come back in so many seconds, or earlier if something changes."""

    seconds: float


Outcome = Done | After
Reconcile = Callable[[Key], Awaitable[Outcome]]
