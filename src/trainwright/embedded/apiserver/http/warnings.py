"""Warnings of the request at hand: anyone below the HTTP boundary may add one, the boundary sends them as headers."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable

_FOUND: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("warnings", default=None)


def collect() -> list[str]:
    """Start a list for the request at hand; what `warn` gets until it ends goes there."""
    found: list[str] = []
    _FOUND.set(found)
    return found


def warn(texts: Iterable[str]) -> None:
    found = _FOUND.get()
    if found is not None:
        found.extend(text for text in texts if text not in found)
