"""How functions of CEL are declared: the function, its least and its most arguments.

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
    """Refuse an argument of another type; a boolean is no number."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise CelError(NO_OVERLOAD)
