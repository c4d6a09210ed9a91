"""Signatures of CEL functions: the function, its least and its greatest number of arguments.

Functions take evaluated arguments, the target of a member call first, and return a value or raise `CelError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.schema.cel.values import NO_OVERLOAD, CelError

Function = Callable[..., Any]
Signature = tuple[Function, int, int]
Signatures = dict[str, Signature]


def need(value: Any, *types: type) -> None:
    """Raise unless a value has one of these types. A boolean is not a number."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise CelError(NO_OVERLOAD)
