"""Warnings of the request at hand: anyone below the boundary may add one, the boundary sends them as headers."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable
from types import TracebackType

_FOUND: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("warnings", default=None)


class collecting:
    """`with collecting() as texts:` what `warn` gets while the block runs goes into this list."""

    def __enter__(self) -> list[str]:
        found: list[str] = []
        self._token = _FOUND.set(found)
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _FOUND.reset(self._token)


def warn(texts: Iterable[str]) -> None:
    found = _FOUND.get()
    if found is not None:
        found.extend(text for text in texts if text not in found)
