"""Kubernetes quantities in CEL: `quantity('1Gi').isLessThan(quantity('2Gi'))`."""

from __future__ import annotations

import re
from typing import Any

from trainwright.schema.cel.signatures import Signatures, need
from trainwright.schema.cel.values import CelError
from trainwright.schema.quantity import Quantity, QuantityError, parse_quantity

_PARTS = re.compile(r"[+-]?([0-9.]*)(.*)", re.DOTALL)
_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class _Written(Quantity):
    """A quantity as a rule wrote it. Kubernetes calls it an integer only if it was written as one: `1000m` is none."""

    __slots__ = ("whole",)

    def __init__(self, parsed: Quantity, *, whole: bool) -> None:
        super().__init__(parsed.nano, parsed.format, str(parsed))
        self.whole = whole


def quantity(text: Any) -> Quantity:
    need(text, str)
    try:
        parsed = parse_quantity(text)
    except QuantityError as error:
        raise CelError(str(error)) from None
    parts = _PARTS.match(text)
    assert parts is not None  # the pattern matches every text
    number, suffix = parts.groups()
    places = len(number.partition(".")[2])
    exponent = _EXPONENTS.get(suffix)
    if exponent is None:
        exponent = 0 if suffix.endswith("i") else int(suffix[1:])
    whole = not (places and suffix.endswith("i")) and exponent - places >= 0
    return _Written(parsed, whole=whole)


def is_quantity(text: Any) -> bool:
    need(text, str)
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _sign(value: Any) -> int:
    need(value, Quantity)
    return int(value.nano > 0) - int(value.nano < 0)


def _is_integer(value: Any) -> bool:
    need(value, Quantity)
    whole = value.whole if isinstance(value, _Written) else value.is_integer
    return bool(whole and -(2**63) <= value.value() < 2**63)


def _as_integer(value: Any) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value.value())


def _as_float(value: Any) -> float:
    need(value, Quantity)
    return float(value.as_float())


def _other(value: Any) -> Quantity:
    if isinstance(value, int) and not isinstance(value, bool):
        return parse_quantity(int(value))
    need(value, Quantity)
    result: Quantity = value
    return result


def _add(left: Any, right: Any) -> Quantity:
    need(left, Quantity)
    result: Quantity = left + _other(right)
    return result


def _sub(left: Any, right: Any) -> Quantity:
    need(left, Quantity)
    result: Quantity = left - _other(right)
    return result


def _is_less(left: Any, right: Any) -> bool:
    need(left, Quantity)
    return bool(left < _other(right))


def _is_greater(left: Any, right: Any) -> bool:
    need(left, Quantity)
    return bool(left > _other(right))


def _compare(left: Any, right: Any) -> int:
    need(left, Quantity)
    other = _other(right)
    return int(left > other) - int(left < other)


GLOBAL: Signatures = {
    "sign": (_sign, 1, 1),
    "quantity": (quantity, 1, 1),
    "isQuantity": (is_quantity, 1, 1),
}

NAMESPACED: Signatures = {}

MEMBER: Signatures = {
    "isInteger": (_is_integer, 0, 0),
    "asInteger": (_as_integer, 0, 0),
    "asApproximateFloat": (_as_float, 0, 0),
    "add": (_add, 1, 1),
    "sub": (_sub, 1, 1),
    "isLessThan": (_is_less, 1, 1),
    "isGreaterThan": (_is_greater, 1, 1),
    "compareTo": (_compare, 1, 1),
}
