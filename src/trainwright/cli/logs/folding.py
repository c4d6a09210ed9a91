"""Equal lines of many ranks, shown once: `[rank 0-7] loading the data`.

Ranks say the same at about the same time. A line waits for a moment; what other ranks say in the same words meanwhile
joins it. Lines leave in the order in which they came, so the order within a rank is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

HOLD_SECONDS = 0.3
MOST_HELD = 2000


class Folded(NamedTuple):
    ranks: Sequence[int]
    text: str


class _Entry:
    __slots__ = ("number", "ranks", "text", "until")

    def __init__(self, number: int, text: str, rank: int, until: float) -> None:
        self.number = number
        self.text = text
        self.ranks = [rank]
        self.until = until


class Folding:
    """The lines that wait. Invariant: a rank's lines stand in `_waiting` in the order in which it said them."""

    def __init__(self) -> None:
        self._waiting: deque[_Entry] = deque()
        self._by_text: dict[str, _Entry] = {}
        """The newest entry of each text."""
        self._last_of: dict[int, int] = {}
        """For each rank, the number of the entry that it was added to last."""
        self._number = 0

    def add(self, rank: int, text: str, now: float) -> None:
        entry = self._by_text.get(text)
        if entry is None or entry.number <= self._last_of.get(rank, 0):
            self._number += 1
            entry = self._by_text[text] = _Entry(self._number, text, rank, now + HOLD_SECONDS)
            self._waiting.append(entry)
        else:
            entry.ranks.append(rank)
        self._last_of[rank] = entry.number

    def ready(self, now: float, *, all_of_them: bool = False) -> Iterator[Folded]:
        """The lines that have waited long enough."""
        while self._waiting:
            entry = self._waiting[0]
            if not (all_of_them or now >= entry.until or len(self._waiting) > MOST_HELD):
                return
            self._waiting.popleft()
            if self._by_text.get(entry.text) is entry:
                del self._by_text[entry.text]
            yield Folded(sorted(entry.ranks), entry.text)


def label(ranks: Iterable[int]) -> str:
    """`rank 0-3,7` for sorted ranks."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return "rank " + ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
