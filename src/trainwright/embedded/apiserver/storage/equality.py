"""Equality of JSON values: to Python `1 == True == 1.0`, to JSON they are three values."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.encode


def same(left: Any, right: Any) -> bool:
    """Deep equality. What Python calls different is; only what it calls equal needs the second look."""
    if left is right:
        return True
    if type(left) is not type(right) or left != right:
        return False
    if not isinstance(left, dict | list):
        return True
    equal: bool = _encode(left, order="sorted") == _encode(right, order="sorted")
    return equal
