"""Output for people: lines with a coloured rank in front, phases in bold.

Colours appear only on a terminal; in a pipe every line is plain text.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
STATES = {"Complete": "bold green", "Failed": "bold red", "Running": "bold cyan", "Suspended": "bold yellow"}


class Terminal:
    """Standard output for people."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._colours: dict[str, str] = {}

    def line(self, who: str, text: str) -> None:
        """Prints one line of a rank's output. Its own control characters are passed on."""
        colour = self._colours.setdefault(who, COLOURS[len(self._colours) % len(COLOURS)])
        self._console.print(Text.assemble((f"[{who}] ", colour), Text(text)), markup=False)

    def phase(self, job: str, state: str, sentence: str) -> None:
        self._console.print(Text.assemble((f"{job}  ", "bold"), (state, STATES.get(state, "bold")), f"  {sentence}"))

    def say(self, sentence: str = "") -> None:
        self._console.print(Text(sentence))

    def warn(self, sentence: str) -> None:
        self._console.print(Text.assemble(("Warning: ", "bold yellow"), sentence))

    def table(self, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
        """Prints a table. Columns are as wide as their longest cell; the last one takes the rest."""
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        for number, row in enumerate([head, *rows]):
            cells = "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            self._console.print(Text(cells, style="bold" if number == 0 else ""))
