"""Whether a stored object has all that a build wants of it, whatever the API server or others have added."""

from __future__ import annotations

from typing import Any


def covers(stored: Any, wanted: Any) -> bool:
    """Every member of `wanted` is in `stored`; lists have the same items, each covered in its place."""
    if isinstance(wanted, dict):
        return isinstance(stored, dict) and all(covers(stored.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(stored) == len(wanted) and all(map(covers, stored, wanted))
    return bool(stored == wanted) and type(stored) is type(wanted)
