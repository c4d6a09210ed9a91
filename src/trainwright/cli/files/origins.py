"""Origins as text: each origin as a phrase, and an object as a tree with the phrases beside its fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trainwright.cli.files.documents import steps
from trainwright.pipeline.provenance import DEFAULT, OVERRIDE, PATCH, PLUGIN, RUNTIME, TRAIN_JOB

_COLUMN = 72


class PlacedOrigin(NamedTuple):
    """An origin, with its file and line if it has them."""

    layer: str
    name: str
    field: str
    file: str
    line: int


class Field(NamedTuple):
    """One scalar of a rendered object."""

    path: str
    identity: str
    """The path with the names of list items in place of their positions."""
    value: Any
    origin: PlacedOrigin
    lost: list[tuple[Any, PlacedOrigin]]


def describe(source: PlacedOrigin) -> str:
    """`TrainJob spec.trainer.image (job.yaml:12)`."""
    place = f" ({source.file}:{source.line})" if source.file else ""
    if source.layer == RUNTIME:
        return f"runtime {source.name} {source.file}:{source.line}"
    if source.layer == TRAIN_JOB:
        return f"TrainJob {source.field}{place}"
    if source.layer == OVERRIDE:
        return f"override {source.field}{place}"
    if source.layer == PATCH:
        return f"patch by {source.name}{place}"
    if source.layer == PLUGIN:
        return f"plugin {source.name} ({source.field})"
    if source.layer == DEFAULT:
        return f"default of {source.field or source.name}" if source.name or source.field else "default"
    return source.layer


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
