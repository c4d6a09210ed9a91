"""Rules for the schema of a CRD: it must be structural, its CEL rules must compile, its defaults must be valid."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.structuralrules import (
    junctor_faults,
    keyword_faults,
    list_faults,
    root_faults,
    rule_faults,
)
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError, SchemaError
from trainwright.schema.jsonobject import Json
from trainwright.schema.regex import compile_regex
from trainwright.schema.structural import StructuralSchema

TYPES = ("array", "boolean", "integer", "number", "object", "string")


def schema_faults(schema: Json, at: str) -> list[FieldError]:
    """All faults of a version's schema."""
    kind = schema.get("type", "")
    if not kind:
        return [field.required(f"{at}.type", "must not be empty at the root")]
    if kind != "object":
        return [field.invalid(f"{at}.type", kind, "must be object at the root")]
    return [*root_faults(schema, at), *_node(schema, at, root=True)]


def _node(schema: Json, at: str, *, root: bool = False) -> list[FieldError]:
    found = [*keyword_faults(schema, at), *list_faults(schema, at), *rule_faults(schema, at)]
    found += junctor_faults(schema, at)
    kind = schema.get("type", "")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not free and "$ref" not in schema:
        found.append(field.required(f"{at}.type", "must not be empty for specified object fields"))
    elif kind and kind not in TYPES:
        found.append(field.not_supported(f"{at}.type", kind, TYPES))
    if kind == "array" and not isinstance(schema.get("items"), dict):
        found.append(field.required(f"{at}.items", "must be specified"))
    if schema.get("pattern"):
        try:
            compile_regex(schema["pattern"])
        except SchemaError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            found.append(field.invalid(f"{at}.pattern", schema["pattern"], text))
    if not found:
        found += _compiled(schema, at, root)
    for name, child in (schema.get("properties") or {}).items():
        found += _node(child, f"{at}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found += _node(schema[name], f"{at}.{name}")
    return found


def _compiled(schema: Json, at: str, root: bool) -> list[FieldError]:
    """Faults of the CEL rules and of the default of one node."""
    found: list[FieldError] = []
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        alone = {**schema, "x-kubernetes-validations": [rule]}
        try:
            _ = StructuralSchema.compile(alone).rules
        except SchemaError as error:
            where = f"{at}.x-kubernetes-validations[{index}].rule"
            found.append(field.invalid(where, rule.get("rule", ""), _reason(str(error))))
    if schema.get("default") is not None and not root:
        faults = StructuralSchema.compile(schema).validate(schema["default"])
        found += [fault._replace(field=f"{at}.default{'.' if fault.field else ''}{fault.field}") for fault in faults]
    return found


def _reason(text: str) -> str:
    """The message of a compilation error, without the rule that it repeats."""
    at = text.find("compilation failed")
    return text[at:] if at >= 0 else f"compilation failed: {text}"
