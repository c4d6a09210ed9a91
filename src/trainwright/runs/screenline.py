"""One line as a terminal shows it.

In: what a program wrote between two newlines, with carriage returns, backspaces and escape sequences, as a progress bar
writes it. Out: the text that a terminal would show at the end, with its colours. Sequences that would move the cursor
out of the line, clear the screen or set the window's title are dropped: the line stands among those of other ranks.
"""

from __future__ import annotations

import re

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TOKENS = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])"  # a control sequence: its parameters, and the letter that says what it does
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # an operating system command
    r"|\x1b.?"
    r"|([\r\x08])"
    r"|([^\x00-\x08\x0b-\x1f\x7f]+)"
    r"|[\x00-\x1f\x7f]"
)
RESET = "\x1b[0m"
LONGEST_STYLE = 64
WIDEST = 8192
"""Columns that the cursor can be sent to: a line's memory is bounded by what was written, not by a number in it."""


def shown(text: str) -> str:
    """The line at its end."""
    if CONTROLS.search(text) is None:
        return text
    return _Row(text).text(is_final=True)


def settled(text: str) -> str:
    """A shorter text with the same effect: the line as it is, and where the cursor stands in it.

    A bar that is drawn a million times before its newline stays as long as one drawing.
    """
    return _Row(text).settled()


class _Row:
    """A row of cells, each a character with the colours it was written in, and a cursor."""

    def __init__(self, text: str) -> None:
        self._cells: list[tuple[str, str]] = []
        self._at = 0
        self._style = ""
        for token in _TOKENS.finditer(text):
            parameters, letter, move, plain = token.groups()
            if plain is not None:
                self._write(plain)
            elif move is not None:
                self._at = 0 if move == "\r" else max(0, self._at - 1)
            elif letter is not None:
                self._obey(letter, parameters)

    def _write(self, plain: str) -> None:
        if self._at > len(self._cells):
            self._cells += [("", " ")] * (self._at - len(self._cells))
        self._cells[self._at : self._at + len(plain)] = [(self._style, character) for character in plain]
        self._at += len(plain)

    def _obey(self, letter: str, parameters: str) -> None:
        if letter == "m":
            is_reset = parameters.strip("0;") == ""
            before = "" if is_reset or len(self._style) > LONGEST_STYLE else self._style
            self._style = "" if is_reset else f"{before}\x1b[{parameters}m"
            return
        if not re.fullmatch(r"[0-9]{0,4}", parameters):
            return
        number = int(parameters) if parameters else None
        match letter:
            case "K" if number in (None, 0):
                del self._cells[self._at :]
            case "K" if number == 2:
                self._cells.clear()
            case "G":
                self._at = min((number or 1) - 1, WIDEST)
            case "C":
                self._at = min(self._at + (number or 1), WIDEST)
            case "D":
                self._at = max(0, self._at - (number or 1))

    def text(self, *, is_final: bool) -> str:
        """The row. Spaces at its end count only while the line may go on: with them a bar has wiped out another."""
        cells = self._cells
        if is_final:
            length = next((n for n in range(len(cells), 0, -1) if cells[n - 1][1] != " "), 0)
            cells = cells[:length]
        pieces, style = [], ""
        for wanted, character in cells:
            if wanted != style:
                pieces.append((RESET if style else "") + wanted)
                style = wanted
            pieces.append(character)
        return "".join(pieces) + (RESET if style else "")

    def settled(self) -> str:
        place = f"\x1b[{self._at + 1}G" if self._at != len(self._cells) else ""
        return f"{self.text(is_final=False)}{place}{self._style}"
