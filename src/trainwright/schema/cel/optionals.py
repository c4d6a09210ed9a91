"""Functions that make and read optional values. Their macros are in macros.py."""

from __future__ import annotations

from typing import Any

from trainwright.schema.cel.signatures import Signatures, need
from trainwright.schema.cel.values import NONE, CelError, Optional_


def optional_value(value: Any) -> Any:
    need(value, Optional_)
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value


def optional_of_non_zero(value: Any) -> Optional_:
    zero = (
        value is None or value is False or value in (0, 0.0, "", b"") or (isinstance(value, list | dict) and not value)
    )
    return NONE if zero and value is not True else Optional_(value)


def _present(value: Any) -> bool:
    need(value, Optional_)
    return bool(value.present)


GLOBAL: Signatures = {}

NAMESPACED: Signatures = {
    "optional.of": (lambda value: Optional_(value), 1, 1),
    "optional.ofNonZeroValue": (optional_of_non_zero, 1, 1),
    "optional.none": (lambda: NONE, 0, 0),
}

MEMBER: Signatures = {
    "hasValue": (_present, 0, 0),
    "value": (optional_value, 0, 0),
}
