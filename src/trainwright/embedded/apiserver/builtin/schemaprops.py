"""JSONSchemaProps of a CRD, checked for types, so that our compiler never sees what Go's decoder refuses or drops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from trainwright.embedded.apiserver.http.bodies import json_kind
from trainwright.schema.jsonobject import Json

MAX_DEPTH = 100
RULE_TEXTS = ("rule", "message", "messageExpression", "reason", "fieldPath")


class _Place(NamedTuple):
    """The place of a member in the schema."""

    path: str
    depth: int
    unknown: list[str]  # grows while the schema is read

    def child(self, suffix: str) -> _Place:
        return _Place(self.path + suffix, self.depth + 1, self.unknown)


def checked(schema: Any, at: str, unknown: list[str]) -> Json:
    """The schema without nulls and unknown members, whose paths are added to `unknown`.

    Raises ValueError, in Go's words, for a member of the wrong type.
    """
    return _schema(schema, _Place(at, 0, unknown))


def _schema(value: Any, place: _Place) -> Json:
    members = _typed(value, dict, place.path, "v1.JSONSchemaProps")
    if place.depth > MAX_DEPTH:
        raise ValueError(f"{place.path}: schemas nested deeper than {MAX_DEPTH} are not supported")
    found: Json = {}
    for name, member in members.items():
        if member is None and name != "default":
            continue
        path = f"{place.path}.{name}"
        read = _READERS.get(name)
        if read is None:
            place.unknown.append(path)
        else:
            found[name] = read(member, place._replace(path=path))
    return found


def _typed(value: Any, kind: type, at: str, go: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(at, value, go)
    return value


def _wrong(at: str, value: Any, go: str) -> ValueError:
    where = at.lstrip(".")
    return ValueError(
        f"json: cannot unmarshal {json_kind(value)} into Go struct field JSONSchemaProps.{where} of type {go}"
    )


def _text(value: Any, place: _Place) -> Any:
    return _typed(value, str, place.path, "string")


def _flag(value: Any, place: _Place) -> Any:
    return _typed(value, bool, place.path, "bool")


def _integer(value: Any, place: _Place) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(place.path, value, "int64")
    return value


def _number(value: Any, place: _Place) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(place.path, value, "float64")
    return value


def _texts(value: Any, place: _Place) -> list[Any]:
    return [_text(item, place) for item in _typed(value, list, place.path, "[]string")]


def _schemas(value: Any, place: _Place) -> list[Json]:
    parts = _typed(value, list, place.path, "[]v1.JSONSchemaProps")
    return [_schema(part, place.child(f"[{index}]")) for index, part in enumerate(parts)]


def _schemas_by_name(value: Any, place: _Place) -> Json:
    members = _typed(value, dict, place.path, "map[string]v1.JSONSchemaProps")
    return {name: _schema(member, place.child(f".{name}")) for name, member in members.items()}


def _one_schema(value: Any, place: _Place) -> Json:
    return _schema(value, place.child(""))


def _schema_or_flag(value: Any, place: _Place) -> Any:
    return value if isinstance(value, bool) else _one_schema(value, place)


def _values(value: Any, place: _Place) -> Any:
    return _typed(value, list, place.path, "[]v1.JSON")


def _anything(value: Any, place: _Place) -> Any:
    return value


def _rules(value: Any, place: _Place) -> list[Json]:
    return [_rule(item, place.path) for item in _typed(value, list, place.path, "v1.ValidationRules")]


def _rule(rule: Any, at: str) -> Json:
    found = {name: value for name, value in _typed(rule, dict, at, "v1.ValidationRule").items() if value is not None}
    for name, value in found.items():
        if name in RULE_TEXTS:
            _typed(value, str, f"{at}.{name}", "string")
        elif name == "optionalOldSelf":
            _typed(value, bool, f"{at}.{name}", "bool")
    return found


_MEMBERS: tuple[tuple[Callable[[Any, _Place], Any], tuple[str, ...]], ...] = (
    (_text, ("id", "$schema", "$ref", "description", "type", "format", "title", "pattern")),
    (_text, ("x-kubernetes-list-type", "x-kubernetes-map-type")),
    (_flag, ("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable")),
    (_flag, ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string")),
    (_number, ("maximum", "minimum", "multipleOf")),
    (_integer, ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")),
    (_texts, ("required", "x-kubernetes-list-map-keys")),
    (_schemas_by_name, ("properties", "patternProperties", "definitions")),
    (_schemas, ("allOf", "oneOf", "anyOf")),
    (_one_schema, ("items", "not")),
    (_schema_or_flag, ("additionalProperties", "additionalItems")),
    (_rules, ("x-kubernetes-validations",)),
    (_values, ("enum",)),
    (_anything, ("default", "example", "externalDocs", "dependencies")),
)
_READERS = {name: read for read, names in _MEMBERS for name in names}
