"""A container's log in pieces, assembled to lines.

In: bytes of a log with timestamps, as they arrive. Out: finished lines with their times, as a terminal would show them,
and the present state of the unfinished one. `Position` remembers how far the lines have been read, so that a broken
connection costs no line and repeats none.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

from trainwright.runs.screenline import settled, shown

LONGEST = 1 << 20
"""A longer line is cut, so that a program that never ends its line does not fill the memory."""

SETTLE = 4096


class Line(NamedTuple):
    time: str
    text: str


class Assembly:
    """The lines of one connection."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> list[Line]:
        """The lines that these bytes finish."""
        *finished, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        lines = [_line(raw) for raw in finished]
        if len(self._rest) > SETTLE and ("\r" in self._rest or "\b" in self._rest):
            time, space, text = self._rest.partition(" ")
            self._rest = f"{time}{space}{settled(text)}"
        if len(self._rest) > LONGEST:
            lines.append(_line(self._rest))
            self._rest = f"{lines[-1].time} "
        return lines

    def end(self) -> list[Line]:
        """The last line, if the container did not finish it."""
        rest, self._rest = self._rest + self._decoder.decode(b"", final=True), ""
        line = _line(rest)
        return [line] if line.text else []

    @property
    def unfinished(self) -> Line:
        return _line(self._rest)


def _line(raw: str) -> Line:
    time, _, text = raw.partition(" ")
    return Line(time, shown(text))


class Position:
    """How far the lines of one container have been read."""

    def __init__(self) -> None:
        self._last = ""
        self._count = 0
        """Lines that have the last time: several may have the same one."""
        self._behind = ""
        """The time up to which the present connection repeats lines; empty when it repeats nothing more."""
        self._repeated = 0

    def resume(self) -> str | None:
        """The time to read from on a new connection, which repeats lines that have it, and maybe earlier ones."""
        self._behind, self._repeated = self._last, self._count
        return self._last or None

    def is_new(self, time: str) -> bool:
        """Whether a line that arrives with this time has not been seen. Counts it if so."""
        if self._behind:
            if time < self._behind:
                return False
            if time == self._behind and self._repeated:
                self._repeated -= 1
                return False
            self._behind = ""
        if time == self._last:
            self._count += 1
        else:
            self._last, self._count = time, 1
        return True
