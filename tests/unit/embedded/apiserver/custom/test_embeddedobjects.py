"""Objects inside custom objects."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.custom.embeddedobjects import EmbeddedObjects
from trainwright.schema.jsonobject import Json
from trainwright.schema.structural import StructuralSchema

TEMPLATE = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"one": TEMPLATE, "many": {"type": "array", "items": TEMPLATE}},
}
EMBEDDED = EmbeddedObjects(StructuralSchema.compile(SCHEMA))


def test_empty_maps_of_embedded_metadata_vanish() -> None:
    obj: Json = {"many": [{"metadata": {"name": "a", "labels": {}, "annotations": None}}]}
    assert EMBEDDED.decode(obj) == []
    assert obj == {"many": [{"metadata": {"name": "a"}}]}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"kind": 1}, "one.kind: Invalid value: 1: must be a string"),
        (
            {"metadata": "x"},
            'one.metadata: Invalid value: "x": json: cannot unmarshal string into Go value of type v1.ObjectMeta',
        ),
        (
            {"metadata": {"name": 1}},
            'one.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field'
            " ObjectMeta.name of type string",
        ),
    ],
)
def test_a_wrong_type_is_named_with_its_place(template: Any, why: str) -> None:
    with pytest.raises(ValueError, match="Invalid value") as found:
        EMBEDDED.decode({"one": template})
    assert str(found.value) == why


def test_embedded_metadata_keeps_to_the_rules_of_metadata() -> None:
    faults = EMBEDDED.faults({"many": [{"metadata": {}}, {"metadata": {"labels": {"bad key": "x"}}}]})
    assert [fault.field for fault in faults] == ["many[1].metadata.labels"]


def test_a_schema_without_embedded_objects_is_not_walked() -> None:
    assert not EmbeddedObjects(StructuralSchema.compile({"type": "object", "properties": {}})).exist
