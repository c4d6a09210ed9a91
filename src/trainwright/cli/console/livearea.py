"""Rows at the bottom of a terminal that are drawn anew in place: unfinished lines of ranks, and the progress bar.

In: rows by key. Out: what to write to the terminal to erase the rows and to draw them. Does no I/O. Between `erased`
and `drawn` the cursor stands at the beginning of a free row, where ordinary lines may be written.
"""

from __future__ import annotations

from collections.abc import Callable

from trainwright.runs.screenline import RESET

MOST_ROWS = 5


class LiveArea:
    """The rows, and how many of them are on the screen now."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._rows: dict[str, str] = {}
        self._foot: str | None = None
        self._drawn = 0
        self.is_stale = False

    def set(self, key: str, row: str | None) -> None:
        """Shows a row from the next drawing on, or removes it."""
        if row is None:
            self.is_stale |= self._rows.pop(key, None) is not None
        elif self._rows.get(key) != row:
            self._rows[key] = row
            self.is_stale = True

    def set_foot(self, row: str | None) -> None:
        """Shows a row below all others, or removes it."""
        self.is_stale |= row != self._foot
        self._foot = row

    def erased(self) -> str:
        count, self._drawn = self._drawn, 0
        if not count:
            return ""
        up = f"\x1b[{count - 1}A" if count > 1 else ""
        return f"\r{up}\x1b[J"

    def drawn(self) -> str:
        rows = list(self._rows.values())
        if len(rows) > MOST_ROWS:
            rows = [f"… and {len(rows) - MOST_ROWS + 1} more lines that change", *rows[1 - MOST_ROWS :]]
        if self._foot is not None:
            rows.append(self._foot)
        width = max(1, self._width() - 1)
        self._drawn, self.is_stale = len(rows), False
        return "\n".join(_cut(row, width) for row in rows)


def _cut(row: str, width: int) -> str:
    """The row in at most so many columns. One that is too long loses its colours together with its end."""
    if "\x1b" not in row and len(row) * 2 <= width:
        return row
    from rich.cells import set_cell_size  # 30 ms, which a run without such a row does not pay
    from rich.text import Text

    plain = Text.from_ansi(row).plain if "\x1b" in row else row
    if len(plain) * 2 <= width:
        return f"{row}{RESET}" if "\x1b" in row else row
    cut = set_cell_size(plain, width).rstrip()
    return row + RESET if "\x1b" in row and cut == plain.rstrip() else cut
