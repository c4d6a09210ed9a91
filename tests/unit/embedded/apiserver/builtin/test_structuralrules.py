"""What makes a CRD's schema structural."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.builtin.schemarules import schema_faults

ITEM = {"type": "object", "properties": {"k": {"type": "string"}}}


@pytest.mark.parametrize(
    ("node", "faults"),
    [
        ({"type": "string", "uniqueItems": True}, ["a.uniqueItems"]),
        ({"type": "string", "id": "x"}, ["a.id"]),
        ({"$ref": "#/x"}, ["a.$ref"]),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": True},
            ["a.additionalProperties"],
        ),
        ({"type": "string", "x-kubernetes-list-type": "set"}, ["a.type"]),
        (
            {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            ["a.items.properties[k].default"],
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            ["a.items.x-kubernetes-map-type"],
        ),
        ({"type": "object", "x-kubernetes-map-type": "bogus"}, ["a.x-kubernetes-map-type"]),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, ["a.properties"]),
        ({"type": "string", "anyOf": [{"default": "x"}]}, ["a.anyOf[0].default"]),
        ({"type": "string", "not": {"description": "x"}}, ["a.not.description"]),
        ({"type": "string", "x-kubernetes-validations": [{"rule": ""}]}, ["a.x-kubernetes-validations[0].rule"]),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".b"}]},
            ["a.x-kubernetes-validations[0].fieldPath"],
        ),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, []),
        ({"type": "object", "oneOf": [{"required": ["b"]}], "properties": {"b": {"type": "string"}}}, []),
    ],
)
def test_each_keyword_has_its_place(node: dict[str, Any], faults: list[str]) -> None:
    found = schema_faults({"type": "object", "properties": {"a": node}}, "at")
    assert [fault.field.replace("at.properties[a]", "a") for fault in found] == faults


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"nullable": True}, "at.nullable: Forbidden: nullable cannot be true at the root"),
        (
            {"properties": {"kind": {"type": "integer"}}},
            'at.properties[kind].type: Invalid value: "integer": must be string',
        ),
        (
            {"properties": {"metadata": {"type": "object", "default": {}}}},
            "at.properties[metadata].default: Forbidden: must not be set in top-level metadata",
        ),
    ],
)
def test_type_and_metadata_are_not_the_schemas_to_say(schema: dict[str, Any], fault: str) -> None:
    assert fault in [str(found) for found in schema_faults({"type": "object", **schema}, "at")]
