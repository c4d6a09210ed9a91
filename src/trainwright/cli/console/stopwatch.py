"""How long each part of a command took."""

from __future__ import annotations

import time


class Stopwatch:
    """Measures how long each part took."""

    def __init__(self) -> None:
        self._begin = self._lap = time.monotonic()
        self._parts: list[tuple[str, float]] = []

    def lap(self, part: str) -> None:
        now = time.monotonic()
        self._parts.append((part, now - self._lap))
        self._lap = now

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in self._parts)
        return f"{self._lap - self._begin:.1f} s: {parts}"
