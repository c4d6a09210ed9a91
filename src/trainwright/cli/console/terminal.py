"""Output for people: lines with a coloured rank in front, phases in bold, rows at the bottom that change in place.

Colours and changing rows appear only on a terminal; in a pipe every line is plain text. `NO_COLOR` takes the colours
away.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from trainwright.cli.console.livearea import LiveArea
from trainwright.runs.screenline import RESET

COLOURS = (36, 32, 33, 35, 34, 96, 92, 95)
"""Codes of cyan, green, yellow, magenta, blue, and brighter cyan, green and magenta."""

BOLD, YELLOW = "1", "33"
STATES = {"Complete": "32", "Failed": "31", "Running": "36", "Suspended": YELLOW}
"""Codes of green, red, cyan and yellow."""

CONTROLS = dict.fromkeys(map(ord, "\a\b\v\f\r"))
"""What would move the cursor out of its line."""

REDRAW_SECONDS = 0.1
GAP = 3
"""Spaces between the columns of a table."""
NARROWEST = 30
"""The last column of a table goes below its row when it has less room than this."""


class Terminal:
    """Standard output for people."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, quiet: bool = False) -> None:
        self._clock = clock
        self._is_quiet = quiet
        """Whether only lines of ranks and what went wrong are printed."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a character that the locale lacks must not end the command
        self._has_styles = _shows_styles(os.environ)
        self.is_live = not quiet and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        """Whether rows can change in place, because a person looks at a screen."""
        self._has_colours = self._has_styles and not os.environ.get("NO_COLOR")
        self._area = LiveArea(lambda: shutil.get_terminal_size().columns)
        self._drawn_at = 0.0
        self._prefixes: dict[str, str] = {}
        self._is_gone = False

    def lines(self, lines: Iterable[tuple[str, int | None, str]]) -> None:
        """Prints lines of ranks: label, rank if it is known, text."""
        self._print("".join(f"{self.prefix(label, rank)}{text}\n" for label, rank, text in lines))

    def prefix(self, label: str, rank: int | None) -> str:
        found = self._prefixes.get(label)
        if found is None:
            colour = COLOURS[(len(self._prefixes) if rank is None else rank) % len(COLOURS)]
            found = f"\x1b[{colour}m[{label}]{RESET} " if self._has_colours else f"[{label}] "
            self._prefixes[label] = found
        return found

    def row(self, key: str, row: str | None) -> None:
        """Shows a row at the bottom, changes it, or removes it. Only on a terminal."""
        if self.is_live:
            self._area.set(key, row)
            self.refresh()

    def foot(self, row: str | None) -> None:
        """Shows a row below all others, changes it, or removes it. Only on a terminal."""
        if self.is_live:
            self._area.set_foot(row)
            self.refresh()

    def refresh(self) -> None:
        """Draws the rows anew if they have changed and were not drawn just now."""
        if self._area.is_stale and self._clock() - self._drawn_at >= REDRAW_SECONDS:
            self._print("")

    def phase(self, job: str, state: str, sentence: str) -> None:
        if state == "Failed":
            self._is_quiet = False  # from here on everything matters
        if self._is_quiet:
            return
        lead = f"{job}  {state}  "
        first, *rest = self._folded(f"{lead}{sentence}", keep=len(lead))
        self._say(f"{self._bold(f'{job}  ')}{self._bold(state, STATES.get(state))}  {first[len(_plain(lead)) :]}")
        for line in rest:
            self._say(line)

    def sentence(self, text: str) -> None:
        """Prints prose that may be longer than the screen is wide: it goes on below its first word."""
        if not self._is_quiet:
            for line in self._folded(text):
                self._say(line)

    def _folded(self, text: str, *, keep: int = 0) -> list[str]:
        """The lines of a sentence. On a terminal none ends inside a word, nor within the first `keep` characters."""
        text = _plain(text)
        columns = shutil.get_terminal_size().columns
        if not self.is_live or len(text) <= columns:
            return [text]
        import textwrap  # not for the many commands that need none

        indent = " " * (len(text) - len(text.lstrip()) if not keep else GAP)
        lead, rest = text[:keep], text[keep:].lstrip()
        lines = textwrap.wrap(
            rest,
            columns,
            initial_indent=" " * len(lead) if keep else indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [f"{lead}{lines[0][len(lead) :]}", *lines[1:]] if lines else [text]

    def say(self, sentence: str = "") -> None:
        if not self._is_quiet:
            self._say(_plain(sentence))

    def warn(self, sentence: str) -> None:
        self._say(f"{self._bold('Warning: ', YELLOW)}{_plain(sentence)}")

    def finding(self, mark: str, state: str, what: str, text: str) -> None:
        """Prints a line with a mark in front, in the colour of a TrainJob's state. Long text goes on in its column."""
        import textwrap  # not for the many commands that need none

        indent = 8 + len(what) + 2
        room = shutil.get_terminal_size().columns - indent
        is_long = self.is_live and len(text) > room >= NARROWEST
        first, *rest = textwrap.wrap(_plain(text), room, break_on_hyphens=False) if is_long else [_plain(text)]
        self._say(f"  {self._bold(f'{mark:4}', STATES.get(state))}  {_plain(what)}  {first}")
        for line in rest:
            self._say(f"{'':{indent}}{line}")

    def change(self, line: str) -> None:
        """Prints a line of a diff: what is added in green, what is taken away in red."""
        colour = {"+": STATES["Complete"], "-": STATES["Failed"], "@": STATES["Running"]}.get(line[:1])
        text = _plain(line)
        self._say(f"\x1b[{colour}m{text}{RESET}" if colour and self._has_colours else text)

    def prompt(self, question: str) -> None:
        """Prints a question and leaves the cursor behind it. Rows at the bottom come back with the next line."""
        self._write(f"{self._area.erased()}{question}")

    def table(self, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[int]:
        """Prints a table and returns its widths: columns are as wide as their longest cell, the last takes the rest."""
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        room = shutil.get_terminal_size().columns - sum(widths[:-1]) - GAP * (len(widths) - 1)
        shown = head[:-1] if self.is_live and room < len(head[-1]) else head
        self._say(self._bold(_cells(shown, widths).rstrip()))
        self.rows(rows, widths)
        return widths

    def rows(self, rows: Sequence[tuple[str, ...]], widths: Sequence[int]) -> None:
        """Prints rows below others. A last cell that does not fit on the screen goes on in its column, or below."""
        import textwrap  # not for the many commands that print no table

        indent = sum(widths[:-1]) + GAP * (len(widths) - 1)
        room = shutil.get_terminal_size().columns - indent
        for row in rows:
            if not self.is_live or len(row[-1]) <= room:
                self._say(_plain(_cells(row, widths).rstrip()))
            elif room >= NARROWEST:
                first, *rest = textwrap.wrap(_plain(row[-1]), room)
                self._say(_plain(_cells((*row[:-1], first), widths).rstrip()))
                for line in rest:
                    self._say(f"{'':{indent}}{line}")
            else:
                self._say(_plain(_cells(row[:-1], widths).rstrip()))
                for line in textwrap.wrap(_plain(row[-1]), room + indent - GAP):
                    self._say(f"{'':{GAP}}{line}")

    def hang_up(self) -> None:
        """Prints nothing from now on: the person has closed the window. What still waits to be written goes nowhere."""
        self._is_gone = True
        if isinstance(sys.stdout, io.TextIOWrapper):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)

    def _bold(self, text: str, colour: str | None = None) -> str:
        if not self._has_styles:
            return _plain(text)
        codes = f"{BOLD};{colour}" if colour and self._has_colours else BOLD
        return f"\x1b[{codes}m{_plain(text)}{RESET}"

    def _say(self, text: str) -> None:
        self._print(f"{text}\n")

    def _print(self, text: str) -> None:
        """Writes whole lines above the rows at the bottom."""
        self._write(f"{self._area.erased()}{text}{self._area.drawn()}" if self.is_live else text)
        self._drawn_at = self._clock()

    def _write(self, text: str) -> None:
        if self._is_gone:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that was closed answers so; a pipe's error is main's business
                raise
            self.hang_up()


def _shows_styles(environ: Mapping[str, str]) -> bool:
    """Whether standard output understands bold and colours, or the user says so."""
    if environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    return bool(environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _plain(text: str) -> str:
    return text.translate(CONTROLS)


def _cells(row: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * GAP).join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
