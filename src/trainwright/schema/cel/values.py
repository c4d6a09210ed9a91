"""CEL's values, their equality and order, and its errors.

JSON values are CEL values: str, bool, int, float, None, list, dict. The others are `UInt`, bytes, `Duration`,
`Timestamp` (a datetime), `Optional_`, `Type` and the types that Kubernetes adds.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final

from trainwright.schema.cel.syntax import UInt
from trainwright.schema.quantity import Quantity


class CelError(Exception):
    """An evaluation that failed. `||`, `&&` and the quantifiers ignore it if another part decides."""


NO_OVERLOAD: Final = "no such overload"


class Optional_:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any = None, *, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Optional_):
            return False
        return self.present is other.present and (not self.present or equal(self.value, other.value))

    __hash__ = None  # type: ignore[assignment]


NONE: Final = Optional_(present=False)


class Type:
    """A type as a value: `type(x) == string`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.nanos == self.nanos

    def __lt__(self, other: Duration) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


Timestamp = dt.datetime

_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MAX_DURATION_TEXT = 1000
_RFC3339 = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def parse_duration(text: str) -> Duration:
    """Go's time.ParseDuration: `1h30m`, `-1.5s`, `0`."""
    body = text.lstrip("+-") if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    if len(body) > _MAX_DURATION_TEXT:
        raise CelError(f'time: invalid duration "{text}"')
    total, position = 0, 0
    for match in _DURATION_PART.finditer(body):
        if match.start() != position:
            break
        whole, _, fraction = match[1].partition(".")
        unit = _UNITS[match[2]]
        total += int(whole or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        position = match.end()
    if not body or position != len(body):
        raise CelError(f'time: invalid duration "{text}"')
    return Duration(-total if text.startswith("-") else total)


def parse_timestamp(text: str) -> Timestamp:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise CelError(f'parsing time "{text}": it is not an RFC 3339 time')
    zone = "+00:00" if match[4] in "Zz" else match[4]
    micros = (match[3] or "").ljust(6, "0")[:6]
    try:
        return dt.datetime.fromisoformat(f"{match[1]}T{match[2]}.{micros}{zone}")
    except ValueError as error:
        raise CelError(f'parsing time "{text}": {error}') from None


def type_name(value: Any) -> str:
    match value:
        case None:
            return "null_type"
        case bool():
            return "bool"
        case UInt():
            return "uint"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case list():
            return "list"
        case dict():
            return "map"
        case dt.datetime():
            return "google.protobuf.Timestamp"
        case Duration():
            return "google.protobuf.Duration"
        case Optional_():
            return "optional_type"
        case Type():
            return "type"
        case Quantity():
            return "kubernetes.Quantity"
        case _:
            return getattr(value, "cel_type", "dyn")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Equality of any two values: those of different types are unequal, numbers compare by value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(k in right and equal(v, right[k]) for k, v in left.items())
    return bool(left == right)


def ordered(left: Any, right: Any) -> bool:
    """Whether `<` is defined between the two."""
    if is_number(left) and is_number(right):
        return True
    if type(left) is not type(right):
        return False
    return isinstance(left, str | bytes | bool | dt.datetime | Duration)
