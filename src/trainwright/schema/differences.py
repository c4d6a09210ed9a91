"""Where two JSON values differ, as paths of fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths of the smallest parts that differ; lists of different length differ as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, two) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, two, f"{path}[{number}]")
    elif before != after:
        yield path
