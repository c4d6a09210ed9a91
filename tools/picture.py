"""What a terminal shows, as text and as an SVG picture.

In: the bytes that a command wrote to a terminal. Out: the rows of its screen, each with its styles. Only the sequences
that Trainwright writes are known (tests/pseudoterminal.py refuses others).
"""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")
COLOURS = {31: "#d1242f", 32: "#1a7f37", 33: "#9a6700", 34: "#0969da", 35: "#8250df", 36: "#1b7c83"}
COLOURS |= {92: "#2da44e", 95: "#a475f9", 96: "#3192aa"}
CELL, LINE, MARGIN = 8.4, 18, 14
PAPER, INK, FRAME = "#ffffff", "#1f2328", "#d1d9e0"


class Style(NamedTuple):
    is_bold: bool = False
    colour: int | None = None


Cell = tuple[str, Style]


def screen_of(raw: str, columns: int) -> list[list[Cell]]:
    """The rows of the screen at the end, all that scrolled by included. Long lines go on in the next row."""
    rows: list[list[Cell]] = [[]]
    row = column = 0
    style = Style()
    for parameters, letter, move, plain in (token.groups() for token in TOKEN.finditer(raw)):
        if plain:
            for letter_of in plain:
                if column == columns:
                    row, column = row + 1, 0
                while len(rows) <= row:
                    rows.append([])
                cells = rows[row]
                cells += [(" ", Style())] * (column - len(cells))
                cells[column : column + 1] = [(letter_of, style)]
                column += 1
        elif move == "\r":
            column = 0
        elif move == "\n":
            row += 1
        elif letter == "A":
            row = max(0, row - int(parameters or 1))
        elif letter == "J":
            del rows[row + 1 :]
            if row < len(rows):
                del rows[row][column:]
        elif letter == "m":
            style = _styled(style, parameters)
        while len(rows) <= row:
            rows.append([])
    while rows and not "".join(cell for cell, _ in rows[-1]).strip():
        rows.pop()
    return rows


def _styled(style: Style, parameters: str) -> Style:
    for code in [int(part or 0) for part in parameters.split(";")]:
        if code == 0:
            style = Style()
        elif code == 1:
            style = style._replace(is_bold=True)
        elif code in COLOURS:
            style = style._replace(colour=code)
    return style


def text_of(rows: list[list[Cell]]) -> str:
    return "\n".join("".join(cell for cell, _ in row).rstrip() for row in rows) + "\n"


def svg_of(rows: list[list[Cell]], columns: int, title: str) -> str:
    """A picture with one line of text for each row, and no font or picture from elsewhere."""
    width, height = columns * CELL + 2 * MARGIN, len(rows) * LINE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="6" fill="{PAPER}" stroke="{FRAME}"/>',
        f'<g font-family="ui-monospace, monospace" font-size="14" fill="{INK}" xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        if spans := "".join(_spans(row)):
            lines.append(f'<text x="{MARGIN}" y="{MARGIN + (number + 0.75) * LINE:.1f}">{spans}</text>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def _spans(row: list[Cell]) -> list[str]:
    """Pieces of one style. Each says where it begins, so that columns stay columns in any font."""
    spans, at = [], 0
    while at < len(row):
        end = at
        while end < len(row) and row[end][1] == row[at][1]:
            end += 1
        text, style = "".join(cell for cell, _ in row[at:end]), row[at][1]
        if text.strip():
            marks = f' x="{MARGIN + at * CELL:.1f}" textLength="{len(text) * CELL:.1f}"'
            marks += ' font-weight="bold"' if style.is_bold else ""
            marks += f' fill="{COLOURS[style.colour]}"' if style.colour is not None else ""
            spans.append(f"<tspan{marks}>{escape(text)}</tspan>")
        at = end
    return spans
