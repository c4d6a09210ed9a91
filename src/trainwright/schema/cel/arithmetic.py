"""CEL's arithmetic on 64-bit integers, doubles, durations and timestamps. Overflow is an error, and types never mix."""

from __future__ import annotations

import datetime as dt
from typing import Any

from trainwright.schema.cel.syntax import UInt
from trainwright.schema.cel.values import NO_OVERLOAD, CelError, Duration


def checked(value: int, *, unsigned: bool) -> int:
    if unsigned:
        if not 0 <= value < 2**64:
            raise CelError("unsigned integer overflow")
        return UInt(value)
    if not -(2**63) <= value < 2**63:
        raise CelError("integer overflow")
    return value


def _numbers(a: Any, b: Any) -> str:
    """The type that both have: `int`, `uint` or `float`. Raises if they differ."""
    if isinstance(a, bool) or isinstance(b, bool):
        raise CelError(NO_OVERLOAD)
    if isinstance(a, UInt) and isinstance(b, UInt):
        return "uint"
    if type(a) is int and type(b) is int:
        return "int"
    if isinstance(a, float) and isinstance(b, float):
        return "float"
    raise CelError(NO_OVERLOAD)


def add(a: Any, b: Any) -> Any:
    if isinstance(a, str) and isinstance(b, str):
        return a + b
    if isinstance(a, bytes) and isinstance(b, bytes):
        return a + b
    if isinstance(a, list) and isinstance(b, list):
        return a + b
    if isinstance(a, Duration) and isinstance(b, Duration):
        return Duration(a.nanos + b.nanos)
    if isinstance(a, dt.datetime) and isinstance(b, Duration):
        return a + dt.timedelta(microseconds=b.nanos // 1000)
    if isinstance(a, Duration) and isinstance(b, dt.datetime):
        return add(b, a)
    kind = _numbers(a, b)
    return a + b if kind == "float" else checked(int(a) + int(b), unsigned=kind == "uint")


def subtract(a: Any, b: Any) -> Any:
    if isinstance(a, Duration) and isinstance(b, Duration):
        return Duration(a.nanos - b.nanos)
    if isinstance(a, dt.datetime) and isinstance(b, dt.datetime):
        return Duration(round((a - b).total_seconds() * 10**6) * 1000)
    if isinstance(a, dt.datetime) and isinstance(b, Duration):
        return a - dt.timedelta(microseconds=b.nanos // 1000)
    kind = _numbers(a, b)
    return a - b if kind == "float" else checked(int(a) - int(b), unsigned=kind == "uint")


def multiply(a: Any, b: Any) -> Any:
    kind = _numbers(a, b)
    return a * b if kind == "float" else checked(int(a) * int(b), unsigned=kind == "uint")


def divide(a: Any, b: Any) -> Any:
    kind = _numbers(a, b)
    if kind == "float":
        if b == 0:
            return float("nan") if a == 0 or a != a else float("inf") * (1 if a > 0 else -1)
        return a / b
    if b == 0:
        raise CelError("division by zero")
    quotient = abs(int(a)) // abs(int(b))  # truncated, as in Go
    return checked(quotient if (a < 0) == (b < 0) else -quotient, unsigned=kind == "uint")


def modulo(a: Any, b: Any) -> Any:
    kind = _numbers(a, b)
    if kind == "float":
        raise CelError(NO_OVERLOAD)
    if b == 0:
        raise CelError("modulus by zero")
    rest = abs(int(a)) % abs(int(b))
    return checked(-rest if a < 0 else rest, unsigned=kind == "uint")


def negate(value: Any) -> Any:
    if isinstance(value, float):
        return -value
    if type(value) is int:
        return checked(-value, unsigned=False)
    if isinstance(value, Duration):
        return Duration(-value.nanos)
    raise CelError(NO_OVERLOAD)
