"""The key and the outcomes of a reconcile.

A reconciler gets a `Key`, never an event: it reads the current state, acts, and returns `Done()` or `After(seconds)`.
If it raises, it is called again with back-off; the class of the error decides how it is logged (a conflict is not).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec


class Key(NamedTuple):
    """One object by name. Cluster-scoped objects have the namespace ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class NotYet(Exception):
    """Raised by a reconciler that has reported to the user why it cannot continue: retried with back-off, logged in one
    line.

    `within` bounds the back-off, for an object with a deadline of its own.
    """

    def __init__(self, message: str, *, within: float | None = None) -> None:
        super().__init__(message)
        self.within = within


class Done(msgspec.Struct, frozen=True):
    """Nothing more to do until something changes."""


class After(msgspec.Struct, frozen=True):
    """Reconcile again after these seconds, though never at once, or earlier if something changes."""

    seconds: float


Outcome = Done | After
Reconcile = Callable[[Key], Awaitable[Outcome]]
