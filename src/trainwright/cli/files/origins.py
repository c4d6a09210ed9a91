"""Origins as text: an object as a tree with the phrases beside its fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainwright.cli.files.documents import steps
from trainwright.pipeline.explanation import Field, describe

_COLUMN = 72


class Tree:
    """One object, field by field, with the origins in a second column."""

    def __init__(self, title: str, fields: Sequence[Field], removed: Sequence[Field]) -> None:
        self.title = title
        self.fields = fields
        self.removed = removed

    def text(self, *, narrow: bool = False) -> str:
        """The tree. On a narrow screen, origins stand below their fields."""
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
            start = f"{leaf}\n{below}" if narrow else f"{leaf:<{_COLUMN}}"
            lines.append(f"{start}  ← {describe(field.origin)}")
            for value, source in field.lost:
                before = below if narrow else f"{'':<{_COLUMN}}"
                lines.append(f"{before}    instead of {_short(value)} of {describe(source)}")
        for field in self.removed:
            for value, source in field.lost:
                lines.append(f"  removed {field.path}: {_short(value)} of {describe(source)}")
        return "\n".join(lines) + "\n"


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
