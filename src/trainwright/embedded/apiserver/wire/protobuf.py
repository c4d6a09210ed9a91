"""Protobuf bodies of built-in kinds, decoded to JSON.

Go's typed clients send `k8s\\0` and a `runtime.Unknown` that carries the object's own message. `types.json` has the
field numbers of every built-in kind. Objects are answered as JSON, which those clients accept; status.py writes
failures as protobuf.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable
from typing import Any

from trainwright.api.times import rfc3339, rfc3339_micro
from trainwright.embedded.apiserver.wire.table import types
from trainwright.schema.jsonobject import Json

MAGIC = b"k8s\x00"
PACKAGES = {"": "core", "apiextensions.k8s.io": "apiextensions", "meta.k8s.io": "meta"}


class ProtobufError(ValueError):
    """The bytes are not the message they should be."""


def type_name(api_version: str, kind: str) -> str:
    """`rbac.authorization.k8s.io/v1`, `Role` is `rbac/v1.Role` in the table."""
    group, _, version = api_version.rpartition("/")
    package = PACKAGES.get(group) or group.partition(".")[0]
    if kind == "DeleteOptions":
        return "meta/v1.DeleteOptions"
    return f"{package}/{version}.{kind}"


def decode_unknown(body: bytes) -> Json:
    """The object inside the envelope, with apiVersion and kind."""
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, value in fields(body[4:]):
        if number == 1 and isinstance(value, bytes):
            for inner, text in fields(value):
                if inner == 1 and isinstance(text, bytes):
                    api_version = text.decode(errors="replace")
                elif inner == 2 and isinstance(text, bytes):
                    kind = text.decode(errors="replace")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    name = type_name(api_version, kind)
    if name not in types():
        raise ProtobufError(f'no kind "{kind}" is known for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **message(name, raw)}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("a number is cut off")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Field numbers with their values: an int for numbers, bytes for everything else."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            found.append((number, value))
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"wire type {wire} is not used by Kubernetes")
        if at + size > len(data):
            raise ProtobufError("a field is cut off")
        found.append((number, data[at : at + size]))
        at += size
    return found


def message(name: str, data: bytes, depth: int = 0) -> Json:
    """One message, decoded by its table entry; unknown fields are left out."""
    if depth > 100:
        raise ProtobufError("nested too deeply")
    by_number = {entry[2]: (key, entry[0], entry[1]) for key, entry in types()[name].items()}
    out: Json = {}
    for number, value in fields(data):
        if number not in by_number:
            continue
        key, target, flags = by_number[number]
        if "i" in flags and isinstance(value, bytes):
            out.update(message(target, value, depth + 1))
        elif target.startswith("[]"):
            out.setdefault(key, []).append(_value(target[2:], value, depth))
        elif target.startswith("<>"):
            items = [_value(target[4:], item, depth) for n, item in fields(_bytes(value)) if n == 1]
            out[key] = items
        elif target.startswith("{}"):
            entry = dict(fields(_bytes(value)))
            map_key = _bytes(entry.get(1, b"")).decode(errors="replace")
            out.setdefault(key, {})[map_key] = _value(target[2:], entry.get(2, b""), depth)
        else:
            out[key] = _value(target, value, depth)
    return out


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("a number stands where a message belongs")
    return value


def _value(target: str, value: int | bytes, depth: int) -> Any:
    read = _SCALARS.get(target)
    if read is not None:
        return read(value)
    raw = _bytes(value)
    if target.startswith("<>[]"):
        return [_value(target[4:], item, depth) for number, item in fields(raw) if number == 1]
    return message(target, raw, depth + 1)


def _integer(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a message stands where a number belongs")
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode(errors="replace")


def _base64(value: int | bytes) -> str:
    return base64.b64encode(_bytes(value)).decode()


def _quantity(value: int | bytes) -> str:
    return _text(dict(fields(_bytes(value))).get(1, b""))


def _int_or_string(value: int | bytes) -> Any:
    parts = dict(fields(_bytes(value)))
    return _bytes(parts.get(3, b"")).decode() if parts.get(1) else parts.get(2, 0)


def _embedded_json(value: int | bytes) -> Any:
    inner = _bytes(dict(fields(_bytes(value))).get(1, b"null")) or b"null"
    try:
        return json.loads(inner)
    except ValueError:
        raise ProtobufError("an embedded value is not JSON") from None


def _time(value: int | bytes) -> str | None:
    moment = _moment(_bytes(value))
    return None if moment is None else rfc3339(moment)


def _microtime(value: int | bytes) -> str | None:
    moment = _moment(_bytes(value))
    return None if moment is None else rfc3339_micro(moment)


def _moment(raw: bytes) -> datetime.datetime | None:
    parts = dict(fields(raw))
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int) or not seconds:
        return None
    if seconds >= 1 << 63:
        return None
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(microsecond=nanos // 1000)
    except (OverflowError, ValueError):
        raise ProtobufError("a time is out of range") from None


_SCALARS: dict[str, Callable[[int | bytes], Any]] = {
    "bool": bool,
    "int": _integer,
    "int32": _integer,
    "int64": _integer,
    "string": _text,
    "bytes": _base64,
    "time": _time,
    "microtime": _microtime,
    "quantity": _quantity,
    "intstr": _int_or_string,
    "raw": _embedded_json,
    "json": _embedded_json,
}
