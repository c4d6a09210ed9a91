"""The influence of a schema on CEL: names of fields, types of scalars, equality of lists.

In CEL a date-time string is a timestamp, a `number` a double, and a keyed list has no order. This module decides that,
at compile time where possible.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainwright.schema.cel.values import CelError, equal, parse_duration, parse_timestamp
from trainwright.schema.errors import SchemaError

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

# Rules write names that are not CEL identifiers with these escapes (`self.a__dash__b`).
_ESCAPED = re.compile(r"__(underscores|dot|dash|slash)__")
_SYMBOLS = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_KEYWORD = re.compile(
    r"__(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return)__"
)


def unescape(name: str) -> str:
    """The name of a property that a rule writes escaped."""
    if "__" not in name:
        return name
    if keyword := _KEYWORD.fullmatch(name):
        return keyword[1]
    return _ESCAPED.sub(lambda match: _SYMBOLS[match[1]], name)


def member(schema: StructuralSchema | None, field: str) -> tuple[str, StructuralSchema | None]:
    """The unescaped name and the schema of `operand.field`. Raises `SchemaError` for a field that is not declared."""
    if schema is None:
        return field, None
    name = unescape(field)
    found = schema.field(name)
    if found is not None:
        return name, found
    if schema.is_map:
        return field, schema.additional
    closed = schema.type == "object" and any(schema.field_names) and not schema.preserve_unknown_fields
    if closed and name not in ("metadata", "apiVersion", "kind"):
        raise SchemaError(f"undefined field '{field}'")
    return name, None


def element(schema: StructuralSchema | None) -> StructuralSchema | None:
    """The schema of the items or members of a value."""
    if schema is None:
        return None
    return schema.items if schema.type == "array" else schema.additional


def _integer(value: Any) -> Any:
    if isinstance(value, float):
        raise CelError("invalid data, expected int, got float64")
    return value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise CelError("Invalid byte formatted string: it is no base64") from None


_GO_TYPES = {bool: "bool", int: "int64", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}


def _text(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def turn(value: Any) -> Any:
        if isinstance(value, str):
            return parse(value)
        # The API server's type check accepts a list in place of a string with a format.
        raise CelError(f"invalid data, expected string, got {_GO_TYPES.get(type(value), 'null')}")

    return turn


def _date(text: str) -> Any:
    return parse_timestamp(f"{text}T00:00:00Z")


_FORMATS: dict[str, Callable[[Any], Any]] = {
    "byte": _bytes,
    "date": _text(_date),
    "date-time": _text(parse_timestamp),
    "datetime": _text(parse_timestamp),
    "duration": _text(parse_duration),
}


def convert(schema: StructuralSchema | None) -> Callable[[Any], Any] | None:
    """The function that makes a CEL value of a JSON scalar of this schema, None if they are the same."""
    if schema is None or schema.int_or_string:
        return None
    if schema.type == "integer":
        return _integer
    if schema.type == "number":
        return _number
    if schema.type == "string":
        return _FORMATS.get(schema.raw.get("format", ""))
    return None


def typed_equal(left: Any, right: Any, schema: StructuralSchema | None) -> bool:
    """Equality by a schema: lists of type map or set have no order."""
    if schema is None or not isinstance(left, list | dict):
        return equal(left, right)
    if left == right:
        return True
    if type(left) is not type(right) or len(left) != len(right):
        return False
    if isinstance(left, dict):
        return all(k in right and typed_equal(v, right[k], schema.member(k)) for k, v in left.items())
    items = schema.items
    if schema.list_type == "map":
        keys = schema.list_map_keys
        known = {_key(item, keys): item for item in right}
        if len(known) != len(right):
            return False
        return all((k := _key(item, keys)) in known and typed_equal(item, known[k], items) for item in left)
    if schema.list_type == "set":
        return all(any(equal(a, b) for b in right) for a in left) and all(any(equal(a, b) for b in left) for a in right)
    return all(typed_equal(a, b, items) for a, b in zip(left, right, strict=True))


def _key(item: Any, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(repr(item.get(key)) for key in keys) if isinstance(item, dict) else (repr(item),)
