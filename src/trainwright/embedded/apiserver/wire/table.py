"""JSON of a built-in kind as Go's typed round trip leaves it.

In: a decoded body. Out: the same object in struct order, with empty values left out or written as the Go types do it,
plus the unknown fields that were dropped. kube-apiserver decodes every built-in into a Go struct, so `{"data": {}}`
comes back without `data`, `status` appears as `{}`, and a number where a string belongs is refused; this module is
that step, driven by `types.json`.
"""

from __future__ import annotations

import base64
import datetime
import functools
import json
import re
import string
from collections.abc import Callable
from importlib import resources
from typing import Any

from trainwright.api import times
from trainwright.schema.quantity import QuantityError, parse_quantity

Converter = Callable[[Any, str, "Decoding"], Any]
ABSENT: Any = object()


class DecodeError(ValueError):
    """A value of the wrong type; the text is the one Go's decoder gives."""


class Decoding:
    """What one decoding notices beside the value: unknown fields, and the struct it is in for messages."""

    __slots__ = ("go", "struct", "unknown")

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.struct = ""
        self.go = ""  # the field's type as Go names it, where that is not the plain one


@functools.cache
def types() -> dict[str, dict[str, list[Any]]]:
    text = resources.files(__package__).joinpath("types.json").read_bytes()
    return json.loads(text)  # type: ignore[no-any-return]


def knows(name: str) -> bool:
    return name in types()


def decode(name: str, value: Any) -> tuple[Any, list[str]]:
    """The object as Go would write it back, and the unknown fields it had."""
    sink = Decoding()
    converted = converter(name)(value, "", sink)
    return converted, sink.unknown


_JSON_NAMES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}


def _mismatch(value: Any, path: str, sink: Decoding, go: str) -> DecodeError:
    """`json: cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32`."""
    found = _JSON_NAMES.get(type(value), "null")
    if isinstance(value, float) and go.startswith("int"):
        found = f"number {value!r}"
    if sink.go and go == "string":
        go = sink.go
    field = _plain(path)
    where = f"Go struct field {sink.struct}.{field}" if field else "Go value"
    return DecodeError(f"json: cannot unmarshal {found} into {where} of type {go}")


def _plain(path: str) -> str:
    """A path as Go's decoder names it: without indexes."""
    return re.sub(r"\[\d+\]", "", path)


def go_name(name: str) -> str:
    """`[]core/v1.Container` is `[]v1.Container` in a Go message."""
    name = name.replace("<>", "").replace("{}", "map[string]").replace("bytes", "[]uint8")
    return re.sub(r"[\w.]+/(v\w+\.)", r"\1", name)


@functools.cache
def converter(name: str) -> Converter:
    if name.startswith("<>"):
        return converter(name[2:])
    if name.startswith("[]"):
        return _list_of(name)
    if name.startswith("{}"):
        return _map_of(name)
    if name in _SCALARS:
        return _SCALARS[name]
    return _struct(name)


def _list_of(name: str) -> Converter:
    item = converter(name[2:])

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _mismatch(value, path, sink, go_name(name))
        return [item(entry, f"{path}[{index}]", sink) for index, entry in enumerate(value)]

    return convert


def _map_of(name: str) -> Converter:
    item = converter(name[2:])

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _mismatch(value, path, sink, go_name(name))
        # Go prints a map key in a message's path like a field.
        return {key: item(entry, path, sink) for key, entry in value.items()}

    return convert


class _Field:
    __slots__ = ("convert", "go", "keep_zero", "name", "pointer", "struct", "zero")

    def __init__(self, name: str, target: str, flags: str, go: str = "") -> None:
        self.name = name
        self.go = go
        self.convert = converter(target)
        self.pointer = "*" in flags
        self.struct = "/" in target and target[0] not in "[{<"
        omit = "o" in flags or "z" in flags
        # `omitempty` does nothing for a struct value; only `omitzero` leaves it out.
        omit_struct = "z" in flags
        self.keep_zero = not self.pointer and (not omit_struct if self.struct or target == "time" else not omit)
        if target == "microtime":
            self.keep_zero = not self.pointer and not omit_struct
        zeros = {
            "string": "",
            "bool": False,
            "int": 0,
            "int32": 0,
            "int64": 0,
            "float": 0,
            "quantity": "0",
            "intstr": 0,
        }
        self.zero = zeros.get(target)


def _struct(name: str) -> Converter:
    fields: dict[str, _Field] = {}
    short = name.rpartition(".")[2]

    def fill(struct: str) -> None:
        for key, (target, flags, _, *go) in types()[struct].items():
            if "i" in flags:
                fill(target)
            else:
                fields[key] = _Field(key, target, flags, *go)

    ready = False

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        nonlocal ready
        if not ready:
            fill(name)
            ready = True
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise _mismatch(value, path, sink, go_name(name))
        prefix = f"{path}." if path else ""
        found: dict[str, Any] = {}
        for key, raw in value.items():  # in the body's order, so that the first fault is the first the reader meets
            field = fields.get(key)
            if field is None:
                if path or key not in ("apiVersion", "kind"):
                    sink.unknown.append(prefix + key)
            elif raw is not None:
                sink.struct, sink.go = short, field.go
                found[key] = field.convert(raw, prefix + key, sink)
        out: dict[str, Any] = {}
        for key, field in fields.items():
            if key not in found:
                if field.keep_zero:
                    out[key] = field.convert({}, prefix + key, sink) if field.struct else field.zero
                continue
            converted = found[key]
            if converted == [] and field.keep_zero:
                converted = None  # an empty slice comes back from storage as none
            if converted or field.pointer or field.keep_zero or field.struct:
                out[key] = converted
            elif key == "managedFields":
                out[key] = []  # an empty list is a request to forget the managers, unlike none at all
        return out

    return convert


def _string(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise _mismatch(value, path, sink, "string")


def _bool(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, bool):
        return value
    if value is None:
        return False
    raise _mismatch(value, path, sink, "bool")


def _integer(go: str, bits: int) -> Converter:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            return 0
        if isinstance(value, int) and not isinstance(value, bool):
            if low <= value < high:
                return value
            found = DecodeError(
                f"json: cannot unmarshal number {value} into Go struct field {sink.struct}.{_plain(path)} of type {go}"
            )
            raise found
        raise _mismatch(value, path, sink, go)

    return convert


def _float(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise _mismatch(value, path, sink, "float64")


_BASE64 = frozenset(string.ascii_letters + string.digits + "+/")


def _bytes(value: Any, path: str, sink: Decoding) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _mismatch(value, path, sink, "[]uint8")
    bad = _bad_base64(value)
    if bad is not None:
        raise DecodeError(f"illegal base64 data at input byte {bad}")
    return base64.b64encode(base64.b64decode(value)).decode()  # one value has one spelling


def _bad_base64(text: str) -> int | None:
    """Where Go's decoder stops: four characters at a time, line ends skipped, padding exact; None if it does not."""
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
        raise _mismatch(value, path, sink, "string")
    return times.rfc3339(parse_time(value))


def _microtime(value: Any, path: str, sink: Decoding) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _mismatch(value, path, sink, "string")
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


def _intstr(value: Any, path: str, sink: Decoding) -> Any:
    if isinstance(value, str):
        return value
    return converter("int32")(value, path, sink)


def _any(value: Any, path: str, sink: Decoding) -> Any:
    return value


_SCALARS: dict[str, Converter] = {
    "string": _string,
    "bool": _bool,
    "int": _integer("int", 64),
    "int32": _integer("int32", 32),
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
