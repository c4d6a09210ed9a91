"""Paths of values inside an object, kept as chains while walking and printed only when something is wrong."""

from __future__ import annotations

from typing import Any

Path = tuple[Any, Any] | None
"""A chain of (parent, step); None is the root. A string is a member, an integer an index, a 1-tuple a key of a map."""


def body_path(path: Path) -> str:
    """The path as structural messages spell it: `spec.settings.key[0]`."""
    return _text(path, map_key=".{}")


def field_path(path: Path) -> str:
    """The path as list and rule errors spell it: `spec.settings[key][0]`."""
    return _text(path, map_key="[{}]")


def _text(path: Path, *, map_key: str) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        if type(step) is int:
            steps.append(f"[{step}]")
        else:
            steps.append(map_key.format(step[0]) if type(step) is tuple else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")
