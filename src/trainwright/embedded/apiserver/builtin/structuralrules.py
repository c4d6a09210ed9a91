"""The rules of structural schemas: where each keyword may stand, and what the list and map types require.

In: one node of a schema and its path. Out: the faults of this node and of its junctors (allOf, anyOf, oneOf, not),
which may narrow values but not declare them. The nodes below it are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

JUNCTORS = ("allOf", "anyOf", "oneOf")
_UNSUPPORTED = ("id", "definitions", "dependencies", "patternProperties", "additionalItems")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def keyword_faults(schema: Json, at: str) -> Iterator[FieldError]:
    """Keywords that are not supported at all, or not at this place."""
    if "$ref" in schema:
        yield field.forbidden(f"{at}.$ref", "$ref is not supported")
    for name in _UNSUPPORTED:
        if name in schema:
            yield field.forbidden(f"{at}.{name}", f"{name} is not supported")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field.forbidden(f"{at}.uniqueItems", text)
    if schema.get("additionalProperties") and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield field.forbidden(f"{at}.additionalProperties", text)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field.invalid(f"{at}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if schema.get("x-kubernetes-embedded-resource"):
        yield from _embedded_faults(schema, at)
    if schema.get("x-kubernetes-map-type") is not None:
        yield from _map_type_faults(schema, at)


def _embedded_faults(schema: Json, at: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind != "object":
        yield field.invalid(f"{at}.type", kind, "must be object if x-kubernetes-embedded-resource is true")
    if not schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        text = "must not be empty if x-kubernetes-embedded-resource is true without"
        yield field.required(f"{at}.properties", f"{text} x-kubernetes-preserve-unknown-fields")


def _map_type_faults(schema: Json, at: str) -> Iterator[FieldError]:
    map_type, kind = schema["x-kubernetes-map-type"], schema.get("type", "")
    if map_type not in ("atomic", "granular"):
        yield field.not_supported(f"{at}.x-kubernetes-map-type", map_type, ["atomic", "granular"])
    if kind != "object":
        yield field.invalid(f"{at}.type", kind, "must be object if x-kubernetes-map-type is specified")


def list_faults(schema: Json, at: str) -> Iterator[FieldError]:
    """The list type and its keys."""
    list_type, kind = schema.get("x-kubernetes-list-type"), schema.get("type", "")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") or {}
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            yield field.required(f"{at}.x-kubernetes-list-type", text)
        else:
            yield field.invalid(f"{at}.x-kubernetes-list-type", list_type, text)
    if list_type is None:
        return
    if list_type not in ("atomic", "set", "map"):
        yield field.not_supported(f"{at}.x-kubernetes-list-type", list_type, ["atomic", "set", "map"])
    if kind != "array":
        yield field.invalid(f"{at}.type", kind, "must be array if x-kubernetes-list-type is specified")
    elif list_type == "map":
        yield from _key_faults(items, keys, at)
    elif list_type == "set":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        for of, member in (("object", "x-kubernetes-map-type"), ("array", "x-kubernetes-list-type")):
            if items.get("type") == of and items.get(member) != "atomic":
                yield field.invalid(f"{at}.items.{member}", items.get(member), text)


def _key_faults(items: Json, keys: list[str], at: str) -> Iterator[FieldError]:
    where = f"{at}.x-kubernetes-list-map-keys"
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield field.invalid(f"{at}.items.type", items.get("type", ""), text)
    if not keys:
        yield field.required(where, "must not be empty if x-kubernetes-list-type is map")
    if len(set(keys)) != len(keys):
        yield field.invalid(where, keys, "must not contain duplicate entries")
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if items.get("type") != "object":
            continue
        if key not in properties:
            yield field.invalid(f"{where}[{index}]", key, "entries must all be names of item properties")
        elif key not in (items.get("required") or ()) and properties[key].get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield field.required(f"{at}.items.properties[{key}].default", text)


def rule_faults(schema: Json, at: str) -> Iterator[FieldError]:
    """Everything about a node's CEL rules but their compilation."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{at}.x-kubernetes-validations[{index}]"
        text = rule.get("rule") or ""
        if not text.strip():
            yield field.required(f"{where}.rule", "rule is not specified")
        if "\n" in rule.get("message", ""):
            yield field.invalid(f"{where}.message", rule["message"], "must not contain line breaks")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield field.not_supported(f"{where}.reason", rule["reason"], list(_REASONS))
        if rule.get("fieldPath") and not _is_declared(schema, rule["fieldPath"]):
            yield field.invalid(f"{where}.fieldPath", rule["fieldPath"], "must be a valid path")
        if rule.get("optionalOldSelf") is not None and "oldSelf" not in text:
            text = "may not be set if oldSelf is not used in rule"
            yield field.invalid(f"{where}.optionalOldSelf", rule["optionalOldSelf"], text)


def _is_declared(schema: Json, path: str) -> bool:
    """Whether a fieldPath names a declared field. Paths with quoted names are not checked."""
    if "[" in path:
        return True
    node: Any = schema
    for name in path.removeprefix(".").split("."):
        node = (node.get("properties") or {}).get(name) or node.get("additionalProperties")
        if not isinstance(node, dict):
            return False
    return True


def junctor_faults(schema: Json, at: str) -> Iterator[FieldError]:
    for name in JUNCTORS:
        if name == "anyOf" and schema.get("x-kubernetes-int-or-string") and schema.get(name) == _INT_OR_STRING:
            continue
        for index, part in enumerate(schema.get(name) or ()):
            yield from _inside(part, f"{at}.{name}[{index}]", schema)
    if isinstance(schema.get("not"), dict):
        yield from _inside(schema["not"], f"{at}.not", schema)


def _inside(part: Json, at: str, outer: Json) -> Iterator[FieldError]:
    free = outer.get("x-kubernetes-int-or-string") and part.get("anyOf") == _INT_OR_STRING
    for name in ("type", "description", "title"):
        if part.get(name):
            yield field.forbidden(f"{at}.{name}", "must be empty to be structural")
    for name in ("default", "additionalProperties"):
        if part.get(name) is not None:
            yield field.forbidden(f"{at}.{name}", "must be undefined to be structural")
    if part.get("nullable"):
        yield field.forbidden(f"{at}.nullable", "must be false to be structural")
    for name, child in (part.get("properties") or {}).items():
        yield from _inside(child, f"{at}.properties[{name}]", {})
    if isinstance(part.get("items"), dict):
        yield from _inside(part["items"], f"{at}.items", {})
    if not free:
        yield from junctor_faults({name: part[name] for name in (*JUNCTORS, "not") if name in part}, at)


def root_faults(schema: Json, at: str) -> Iterator[FieldError]:
    """The root declares an object, and leaves apiVersion, kind and metadata to Kubernetes."""
    properties = schema.get("properties") or {}
    if schema.get("nullable"):
        yield field.forbidden(f"{at}.nullable", "nullable cannot be true at the root")
    for name in ("apiVersion", "kind", "metadata"):
        member = properties.get(name)
        if member is None:
            continue
        wanted = "object" if name == "metadata" else "string"
        if member.get("type", "") != wanted:
            yield field.invalid(f"{at}.properties[{name}].type", member.get("type", ""), f"must be {wanted}")
        if member.get("default") is not None:
            yield field.forbidden(f"{at}.properties[{name}].default", f"must not be set in top-level {name}")
    if set((properties.get("metadata") or {}).get("properties") or ()) - {"name", "generateName"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield field.forbidden(f"{at}.properties[metadata]", text)
