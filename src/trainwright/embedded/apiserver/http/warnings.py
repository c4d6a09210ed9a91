"""Warnings of the request at hand: anyone below the boundary may add one, the boundary sends them as headers."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterable, Iterator

_FOUND: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("warnings", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[list[str]]:
    """While the block runs, what `warn` gets goes into this list."""
    found: list[str] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def warn(texts: Iterable[str]) -> None:
    found = _FOUND.get()
    if found is not None:
        found.extend(text for text in texts if text not in found)
