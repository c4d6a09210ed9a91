"""Origins as text: an object as a tree with the phrases beside its fields."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from trainwright.cli.files.documents import steps
from trainwright.pipeline.explanation import Field, describe

_COLUMN = 72
WIDE = 120
"""Columns of a screen on which origins have room beside their fields."""


class Tree:
    """One object, field by field, with the origins in a second column."""

    def __init__(self, title: str, fields: Sequence[Field], removed: Sequence[Field]) -> None:
        self.title = title
        self.fields = fields
        self.removed = removed

    def text(self, columns: int | None = None) -> str:
        """The tree, for a screen of so many columns if there is one: no line ends inside a word, and where it is
        narrow, origins stand below their fields."""
        narrow = columns is not None and columns < WIDE
        lines = [self.title]
        above: list[str] = []
        for field in self.fields:
            branch = _branch(field.path)
            shared = 0
            while shared < min(len(above), len(branch) - 1) and above[shared] == branch[shared]:
                shared += 1
            for depth in range(shared, len(branch) - 1):
                lines.append(f"{'  ' * (depth + 1)}{branch[depth]}")
            above = branch[:-1]
            leaf = f"{'  ' * len(branch)}{branch[-1]}: {_short(field.value)}"
            below = "  " * len(branch)
            if narrow:
                lines.append(leaf)
            start = below if narrow else f"{leaf:<{_COLUMN}}"
            lines += _folded(f"{start}  ← ", describe(field.origin), columns)
            for value, source in field.lost:
                before = below if narrow else f"{'':<{_COLUMN}}"
                lines += _folded(f"{before}    ", f"instead of {_short(value)} of {describe(source)}", columns)
        for field in self.removed:
            for value, source in field.lost:
                lines.append(f"  removed {field.path}: {_short(value)} of {describe(source)}")
        return "\n".join(lines) + "\n"


def _folded(before: str, phrase: str, columns: int | None) -> list[str]:
    """A phrase behind what stands before it; one that is too long for the screen goes on below its first word."""
    if columns is None or len(before) + len(phrase) <= columns:
        return [f"{before}{phrase}"]
    first, *rest = textwrap.wrap(phrase, max(1, columns - len(before)), break_long_words=False, break_on_hyphens=False)
    indent = max(
        0, min(len(before), columns - max(map(len, rest), default=0))
    )  # a long path begins further to the left
    return [f"{before}{first}", *(f"{'':{indent}}{line}" for line in rest)]


def _branch(path: str) -> list[str]:
    """The steps of a path, with list positions joined to the list."""
    branch: list[str] = []
    for step in steps(path):
        if isinstance(step, int) and branch:
            branch[-1] += f"[{step}]"
        else:
            branch.append(str(step))
    return branch


def _short(value: Any) -> str:
    text = " ".join(str(value).split()) if isinstance(value, str) else repr(value) if value is not None else "nothing"
    if value is True or value is False:
        text = str(value).lower()
    return text if len(text) <= 60 else f"{text[:57]}..."
