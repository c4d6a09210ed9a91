"""Sizes, conversions between types, and types themselves."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from trainwright.schema.cel.signatures import Signatures, need
from trainwright.schema.cel.syntax import UInt
from trainwright.schema.cel.values import (
    NO_OVERLOAD,
    CelError,
    Duration,
    Type,
    parse_duration,
    parse_timestamp,
    type_name,
)
from trainwright.schema.gotext import number_text
from trainwright.schema.quantity import Quantity


def _int64(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise CelError("integer overflow")
    return value


def size(value: Any) -> int:
    need(value, str, bytes, list, dict)
    return len(value)


def to_int(value: Any) -> int:
    if isinstance(value, str):
        try:
            return _int64(int(value)) if re.fullmatch(r"[+-]?[0-9]+", value) else _bad_conversion(value)
        except ValueError:
            _bad_conversion(value)
    if isinstance(value, dt.datetime):
        return math.floor(value.timestamp())
    need(value, int, float)
    if isinstance(value, float):
        if not math.isfinite(value) or not -(2.0**63) < value < 2.0**63:
            raise CelError("integer overflow")
        return math.trunc(value)
    return _int64(int(value))


def _bad_conversion(value: str) -> int:
    raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')


def to_uint(value: Any) -> UInt:
    number = to_int(value) if not isinstance(value, UInt) else int(value)
    if not 0 <= number < 2**64:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def to_double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None
    need(value, int, float)
    return float(value)


def to_string(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return number_text(value)
        case int():
            return str(int(value))
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
        case Duration():
            seconds = value.nanos / 10**9
            return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"
        case Quantity():
            return str(value)
    if hasattr(value, "cel_type"):
        return str(value)
    raise CelError(NO_OVERLOAD)


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    need(value, str)
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise CelError(f'type conversion error from "{value}" to bool')


def to_bytes(value: Any) -> bytes:
    need(value, str, bytes)
    return value.encode() if isinstance(value, str) else bytes(value)


def to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    need(value, str)
    return parse_duration(value)


def to_timestamp(value: Any) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return dt.datetime.fromtimestamp(value, dt.UTC)
    need(value, str)
    return parse_timestamp(value)


GLOBAL: Signatures = {
    "size": (size, 1, 1),
    "int": (to_int, 1, 1),
    "uint": (to_uint, 1, 1),
    "double": (to_double, 1, 1),
    "string": (to_string, 1, 1),
    "bool": (to_bool, 1, 1),
    "bytes": (to_bytes, 1, 1),
    "duration": (to_duration, 1, 1),
    "timestamp": (to_timestamp, 1, 1),
    "dyn": (lambda value: value, 1, 1),
    "type": (lambda value: Type(type_name(value)), 1, 1),
}

NAMESPACED: Signatures = {}

MEMBER: Signatures = {
    "size": (size, 0, 0),
}
