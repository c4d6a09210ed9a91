"""Who hears the ranks: a person at a terminal or behind a pipe, or a program that reads JSON.

In: what was said, container by container. Out: text on standard output. On a terminal, equal lines of several ranks are
folded and unfinished lines change in place; in a pipe, every line of every rank stands by itself, so that it can be
searched and counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from trainwright.cli.console.terminal import Terminal
from trainwright.cli.logs.folding import Folding, label

UNFINISHED_SECONDS = 0.2
"""A line that is finished sooner is not shown before it is."""


class Said(NamedTuple):
    """One line of a container."""

    time: str
    pod: str
    container: str
    attempt: int
    label: str
    rank: int | None
    text: str


class Audience(Protocol):
    def expect(self, ranks: int) -> None:
        """Called before the first line, and whenever it is known that more ranks may speak."""
        ...

    def hear(self, lines: Sequence[Said]) -> None: ...

    def hear_unfinished(self, source: str, line: Said | None) -> None:
        """The present state of a container's unfinished line, or None when it has none any more."""
        ...

    def tick(self) -> None:
        """Called several times a second while lines may come."""
        ...

    def end(self) -> None:
        """Called when no more lines come."""
        ...


class People:
    """Lines for people. `ranks` are those to show, None for all."""

    def __init__(
        self,
        terminal: Terminal,
        *,
        ranks: frozenset[int] | None = None,
        timestamps: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terminal = terminal
        self._ranks = ranks
        self._timestamps = timestamps
        self._clock = clock
        self._folding = Folding() if terminal.is_live and not timestamps else None
        self._ranks_expected = 2
        self._unfinished: dict[str, tuple[float, str]] = {}
        """The unfinished lines by their sources: since when, and what they show now."""

    def expect(self, ranks: int) -> None:
        self._ranks_expected = ranks

    def hear(self, lines: Sequence[Said]) -> None:
        wanted = lines if self._ranks is None else [line for line in lines if line.rank in self._ranks]
        if self._folding is None or self._ranks_expected < 2:  # a line of the only rank has nothing to wait for
            self._terminal.lines((line.label, line.rank, self._text(line)) for line in wanted)
            return
        now = self._clock()
        for line in wanted:
            if line.rank is None:
                self._terminal.lines([(line.label, None, line.text)])
            else:
                self._folding.add(line.rank, line.text, now)
        self._release(self._folding, now)

    def hear_unfinished(self, source: str, line: Said | None) -> None:
        if line is None or (self._ranks is not None and line.rank not in self._ranks):
            if self._unfinished.pop(source, None):
                self._terminal.row(source, None)
        else:
            since, _ = self._unfinished.get(source, (self._clock(), ""))
            self._unfinished[source] = since, f"{self._terminal.prefix(line.label, line.rank)}{line.text}"

    def tick(self) -> None:
        for source, (since, row) in self._unfinished.items():
            if self._clock() - since >= UNFINISHED_SECONDS:
                self._terminal.row(source, row)
        if self._folding is not None:
            self._release(self._folding, self._clock())
        self._terminal.refresh()

    def end(self) -> None:
        if self._folding is not None:
            self._release(self._folding, self._clock(), all_of_them=True)

    def _release(self, folding: Folding, now: float, *, all_of_them: bool = False) -> None:
        ready = [(label(ranks), ranks[0], text) for ranks, text in folding.ready(now, all_of_them=all_of_them)]
        if ready:
            self._terminal.lines(ready)

    def _text(self, line: Said) -> str:
        return f"{line.time} {line.text}" if self._timestamps else line.text


class Programs:
    """One JSON object for each line."""

    def __init__(self, *, ranks: frozenset[int] | None = None) -> None:
        self._ranks = ranks

    def expect(self, ranks: int) -> None:
        return

    def hear(self, lines: Sequence[Said]) -> None:
        for line in lines:
            if self._ranks is None or line.rank in self._ranks:
                said = {
                    "time": line.time,
                    "rank": line.rank,
                    "pod": line.pod,
                    "container": line.container,
                    "attempt": line.attempt,
                    "line": line.text,
                }
                sys.stdout.write(json.dumps(said, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def hear_unfinished(self, source: str, line: Said | None) -> None:
        return

    def tick(self) -> None:
        return

    def end(self) -> None:
        return
