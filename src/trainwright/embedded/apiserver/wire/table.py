"""JSON of a built-in kind as Go's typed round trip leaves it.

In: a decoded body. Out: the same object in struct order, with empty values left out or written as the Go types do it,
plus the unknown fields that were dropped. kube-apiserver decodes every built-in into a Go struct, so `{"data": {}}`
comes back without `data`, `status` appears as `{}`, and a number where a string belongs is refused; this module is
that step, driven by `types.json`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

from trainwright.embedded.apiserver.wire.scalars import SCALARS, Converter, Decoding, mismatch
from trainwright.schema.jsonobject import Json

_ZEROS = {"string": "", "bool": False, "int": 0, "int32": 0, "int64": 0, "float": 0, "quantity": "0", "intstr": 0}


@functools.cache
def types() -> dict[str, dict[str, list[Any]]]:
    text = resources.files(__package__).joinpath("types.json").read_bytes()
    return json.loads(text)  # type: ignore[no-any-return]


def decode(name: str, value: Any) -> tuple[Any, list[str]]:
    """The object as Go would write it back, and the unknown fields it had. Raises `DecodeError`."""
    sink = Decoding()
    converted = converter(name)(value, "", sink)
    return converted, sink.unknown


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
    return SCALARS.get(name) or _Struct(name).convert


def _list_of(name: str) -> Converter:
    item = converter(name[2:])

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise mismatch(value, path, sink, go_name(name))
        return [item(entry, f"{path}[{index}]", sink) for index, entry in enumerate(value)]

    return convert


def _map_of(name: str) -> Converter:
    item = converter(name[2:])

    def convert(value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise mismatch(value, path, sink, go_name(name))
        return {key: item(entry, path, sink) for key, entry in value.items()}  # Go's messages do not name the key

    return convert


class _Field:
    """One field of a struct, and whether it is written when it is empty."""

    __slots__ = ("convert", "go", "keep_zero", "pointer", "struct", "zero")

    def __init__(self, target: str, flags: str, go: str = "") -> None:
        self.go = go
        self.convert = converter(target)
        self.pointer = "*" in flags
        self.struct = "/" in target and target[0] not in "[{<"
        self.zero = _ZEROS.get(target)
        # `omitempty` does nothing for a struct, which Go's times are too; only `omitzero` leaves it out.
        omits = "z" if self.struct or target in ("time", "microtime") else "oz"
        self.keep_zero = not self.pointer and not any(flag in flags for flag in omits)


class _Struct:
    """Converts the values of one struct."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._short = name.rpartition(".")[2]

    @functools.cached_property
    def _fields(self) -> dict[str, _Field]:
        """Made at the first use, because structs may contain themselves."""
        return dict(_fields_of(self._name))

    def convert(self, value: Any, path: str, sink: Decoding) -> Any:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise mismatch(value, path, sink, go_name(self._name))
        prefix = f"{path}." if path else ""
        return self._written(self._read(value, prefix, sink), prefix, sink)

    def _read(self, value: Json, prefix: str, sink: Decoding) -> Json:
        """The known members, converted in the body's order, so that the first fault is the first one in the body."""
        fields = self._fields
        found: Json = {}
        for name, raw in value.items():
            field = fields.get(name)
            if field is None:
                if prefix or name not in ("apiVersion", "kind"):
                    sink.unknown.append(prefix + name)
            elif raw is not None:
                sink.struct, sink.go = self._short, field.go
                found[name] = field.convert(raw, prefix + name, sink)
        return found

    def _written(self, found: Json, prefix: str, sink: Decoding) -> Json:
        """The members in the order of the struct, as Go writes them or leaves them out."""
        out: Json = {}
        for name, field in self._fields.items():
            if name not in found:
                if field.keep_zero:
                    out[name] = field.convert({}, prefix + name, sink) if field.struct else field.zero
                continue
            value = found[name]
            if value == [] and field.keep_zero:
                value = None  # an empty slice comes back from storage as none
            if value or field.pointer or field.keep_zero or field.struct:
                out[name] = value
            elif name == "managedFields":
                out[name] = []  # an empty list asks to forget the managers, an absent one does not
        return out


def _fields_of(struct: str) -> Iterator[tuple[str, _Field]]:
    for name, (target, flags, _, *go) in types()[struct].items():
        if "i" in flags:  # an inlined struct
            yield from _fields_of(target)
        else:
            yield name, _Field(target, flags, *go)
