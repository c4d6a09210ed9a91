"""JSONSchemaProps of a CRD, checked for shape: what Go would refuse or drop never reaches the schema compiler."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.http.bodies import json_kind
from trainwright.schema.jsonobject import Json

TEXTS = ("id", "$schema", "$ref", "description", "type", "format", "title", "pattern", "x-kubernetes-list-type")
TEXTS_MORE = ("x-kubernetes-map-type",)
FLAGS = (
    *("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-preserve-unknown-fields"),
    *("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
)
NUMBERS = ("maximum", "minimum", "multipleOf")
WHOLE = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
TEXT_LISTS = ("required", "x-kubernetes-list-map-keys")
SCHEMA_MAPS = ("properties", "patternProperties", "definitions")
SCHEMA_LISTS = ("allOf", "oneOf", "anyOf")
FREE = ("default", "enum", "example", "externalDocs", "dependencies")
RULE_TEXTS = ("rule", "message", "messageExpression", "reason", "fieldPath")
MAX_DEPTH = 100


def checked(schema: Any, at: str, unknown: list[str], depth: int = 0) -> Json:
    """The schema without nulls and unknown members. Raises ValueError for a member of the wrong type."""
    if not isinstance(schema, dict):
        raise _wrong(at, schema, "v1.JSONSchemaProps")
    if depth > MAX_DEPTH:
        raise ValueError(f"{at}: schemas nested deeper than {MAX_DEPTH} are not supported")
    found: Json = {}
    for name, value in schema.items():
        where = f"{at}.{name}"
        if value is None and name != "default":
            continue
        if name in TEXTS or name in TEXTS_MORE:
            found[name] = _typed(value, str, where, "string")
        elif name in FLAGS:
            found[name] = _typed(value, bool, where, "bool")
        elif name in NUMBERS or name in WHOLE:
            if isinstance(value, bool) or not isinstance(value, int if name in WHOLE else int | float):
                raise _wrong(where, value, "int64" if name in WHOLE else "float64")
            found[name] = value
        elif name in TEXT_LISTS:
            found[name] = [_typed(item, str, where, "string") for item in _typed(value, list, where, "[]string")]
        elif name in SCHEMA_MAPS:
            members = _typed(value, dict, where, "map[string]v1.JSONSchemaProps")
            found[name] = {key: checked(item, f"{where}.{key}", unknown, depth + 1) for key, item in members.items()}
        elif name in SCHEMA_LISTS:
            parts = _typed(value, list, where, "[]v1.JSONSchemaProps")
            found[name] = [checked(item, f"{where}[{index}]", unknown, depth + 1) for index, item in enumerate(parts)]
        elif name in ("items", "not"):
            found[name] = checked(value, where, unknown, depth + 1)
        elif name in ("additionalProperties", "additionalItems"):
            found[name] = value if isinstance(value, bool) else checked(value, where, unknown, depth + 1)
        elif name == "x-kubernetes-validations":
            found[name] = [_rule(item, where) for item in _typed(value, list, where, "v1.ValidationRules")]
        elif name == "enum":
            found[name] = _typed(value, list, where, "[]v1.JSON")
        elif name in FREE:
            found[name] = value
        else:
            unknown.append(where)
    return found


def _typed(value: Any, kind: type, at: str, go: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(at, value, go)
    return value


def _rule(rule: Any, at: str) -> Json:
    found = {name: value for name, value in _typed(rule, dict, at, "v1.ValidationRule").items() if value is not None}
    for name, value in found.items():
        if name in RULE_TEXTS:
            _typed(value, str, f"{at}.{name}", "string")
        elif name == "optionalOldSelf":
            _typed(value, bool, f"{at}.{name}", "bool")
    return found


def _wrong(at: str, value: Any, go: str) -> ValueError:
    field = at.lstrip(".")
    return ValueError(
        f"json: cannot unmarshal {json_kind(value)} into Go struct field JSONSchemaProps.{field} of type {go}"
    )
