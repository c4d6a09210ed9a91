"""Scalars of the wire table: each value as Go's decoder takes it and writes it back, or its error."""

from __future__ import annotations

import base64
import datetime
import re
import string
from collections.abc import Callable
from typing import Any

from trainwright.api import times
from trainwright.schema.quantity import QuantityError, parse_quantity

Converter = Callable[[Any, str, "Decoding"], Any]
"""Value, its path, the decoding it belongs to → the value as Go writes it back. Raises `DecodeError`."""


class DecodeError(ValueError):
    """A value of the wrong type, in the words of Go's decoder."""


class Decoding:
    """The state of one decoding: the unknown fields so far, and the field being read, for messages."""

    __slots__ = ("go", "struct", "unknown")

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.struct = ""
        self.go = ""  # the field's type as Go names it, where that is not the plain one


_JSON_NAMES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}


def mismatch(value: Any, path: str, sink: Decoding, go: str) -> DecodeError:
    """`json: cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32`."""
    found = _JSON_NAMES.get(type(value), "null")
    if isinstance(value, float) and go.startswith("int"):
        found = f"number {value!r}"
    if sink.go and go == "string":
        go = sink.go
    field = _without_indexes(path)
    where = f"Go struct field {sink.struct}.{field}" if field else "Go value"
    return DecodeError(f"json: cannot unmarshal {found} into {where} of type {go}")


def _without_indexes(path: str) -> str:
    """A path as Go's decoder names it."""
    return re.sub(r"\[\d+\]", "", path)


def _string(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise mismatch(value, path, sink, "string")


def _bool(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, bool):
        return value
    if value is None:
        return False
    raise mismatch(value, path, sink, "bool")


def _integer(go: str, bits: int) -> Converter:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            return 0
        if isinstance(value, int) and not isinstance(value, bool):
            if low <= value < high:
                return value
            field = f"{sink.struct}.{_without_indexes(path)}"
            raise DecodeError(f"json: cannot unmarshal number {value} into Go struct field {field} of type {go}")
        raise mismatch(value, path, sink, go)

    return convert


def _float(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise mismatch(value, path, sink, "float64")


_BASE64 = frozenset(string.ascii_letters + string.digits + "+/")


def _bytes(value: Any, path: str, sink: Decoding) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise mismatch(value, path, sink, "[]uint8")
    bad = _bad_base64(value)
    if bad is not None:
        raise DecodeError(f"illegal base64 data at input byte {bad}")
    return base64.b64encode(base64.b64decode(value)).decode()  # in canonical form


def _bad_base64(text: str) -> int | None:
    """The index at which Go's decoder gives up, or None.

    It reads four characters at a time, skips line ends and insists on exact padding.
    """
    places = [index for index, char in enumerate(text) if char not in "\r\n"]
    filled = 0  # characters of the current four
    for step, index in enumerate(places):
        char = text[index]
        if char in _BASE64:
            filled = (filled + 1) % 4
            continue
        if char != "=" or filled < 2:
            return index
        rest = places[step + 1 :]
        if filled == 2:
            if not rest:
                return len(text)
            if text[rest[0]] != "=":
                return rest[0] - 1
            rest = rest[1:]
        return rest[0] if rest else None
    return len(text) - filled if filled else None


def parse_time(value: str, layout: str = "2006-01-02T15:04:05Z07:00") -> datetime.datetime:
    try:
        return times.moment_of(value)
    except ValueError:
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None


def _time(value: Any, path: str, sink: Decoding) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise mismatch(value, path, sink, "string")
    return times.rfc3339(parse_time(value))


def _microtime(value: Any, path: str, sink: Decoding) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise mismatch(value, path, sink, "string")
    return times.rfc3339_micro(parse_time(value, "2006-01-02T15:04:05.000000Z07:00"))


def _quantity(value: Any, path: str, sink: Decoding) -> Any:
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DecodeError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    try:
        return str(parse_quantity(value))
    except QuantityError as error:
        raise DecodeError(str(error)) from None


_int32 = _integer("int32", 32)


def _intstr(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, str):
        return value
    return _int32(value, path, sink)


def _any(value: Any, path: str, sink: Decoding) -> Any:
    return value


SCALARS: dict[str, Converter] = {
    "string": _string,
    "bool": _bool,
    "int": _integer("int", 64),
    "int32": _int32,
    "int64": _integer("int64", 64),
    "float": _float,
    "bytes": _bytes,
    "time": _time,
    "microtime": _microtime,
    "duration": _string,
    "quantity": _quantity,
    "intstr": _intstr,
    "raw": _any,
    "json": _any,
}
