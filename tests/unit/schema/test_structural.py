# ruff: noqa: E501 - tables of whole sentences read better on one line
"""Structural schemas: pruning, defaults, limits, list keys, and what an update may leave as it was."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.custom_resource import NOT_CHECKED, check_create, check_update
from trainwright.schema.errors import SchemaError
from trainwright.schema.structural import StructuralSchema


def of(**fields: Any) -> StructuralSchema:
    return StructuralSchema.compile({"type": "object", "properties": fields})


def texts(schema: StructuralSchema, value: Any, old: Any = None) -> list[str]:
    return [str(error) for error in schema.validate(value, old)]


LIST_MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 5}}},
}


def test_unknown_fields_are_pruned_and_listed() -> None:
    schema = of(
        spec={
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
                "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {}}}},
                "free": {"x-kubernetes-preserve-unknown-fields": True},
            },
        }
    )
    value = {
        "apiVersion": "v1",
        "metadata": {"name": "n", "bogus": 1, "ownerReferences": [{"uid": "u", "extra": 1}]},
        "spec": {
            "a": "x",
            "b": 1,
            "l": [{"k": "v", "z": 1}],
            "m": {"any": {"x": 1, "y": 2}},
            "free": {"q": [{"r": 1}]},
        },
    }
    assert schema.prune(value) == [
        "metadata.bogus",
        "metadata.ownerReferences[0].extra",
        "spec.b",
        "spec.l[0].z",
        "spec.m.any.y",
    ]
    assert value["spec"] == {"a": "x", "l": [{"k": "v"}], "m": {"any": {"x": 1}}, "free": {"q": [{"r": 1}]}}


def test_defaults_fill_existing_objects_and_nulls_that_are_not_allowed() -> None:
    schema = of(
        a={"type": "string", "default": "x"},
        nullable={"type": "string", "nullable": True, "default": "x"},
        absent={"type": "object", "properties": {"b": {"type": "integer", "default": 1}}},
        there={"type": "object", "properties": {"b": {"type": "integer", "default": 1}}},
        auto={"type": "object", "default": {}, "properties": {"c": {"type": "integer", "default": 2}}},
        gone={"type": "string"},
    )
    value: dict[str, Any] = {"a": None, "nullable": None, "there": {}, "gone": None}
    schema.default(value)
    assert value == {"a": "x", "nullable": None, "there": {"b": 1}, "auto": {"c": 2}}


def test_every_object_gets_its_own_copy_of_a_default() -> None:
    schema = of(auto={"type": "object", "default": {"l": []}, "x-kubernetes-preserve-unknown-fields": True})
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    schema.default(first)
    first["auto"]["l"].append(1)
    schema.default(second)
    assert second == {"auto": {"l": []}}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ({"type": "integer", "format": "int32"}, True, 'x: Invalid value: "": x in body must be of type int32: ""'),
        ({"type": "integer", "format": "int32"}, "a", 'x: Invalid value: "string": x in body must be of type integer: "string"'),
        ({"type": "integer", "format": "int32"}, 2**31, '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x'),
        ({"type": "string", "nullable": True, "enum": ["a"]}, None, 'x: Unsupported value: null: supported values: "a"'),
        ({"type": "integer", "enum": [1, 2]}, 3, 'x: Unsupported value: 3: supported values: "1", "2"'),
        ({"type": "string", "maxLength": 3}, "äöüß", "x: Too long: may not be more than 3 bytes"),
        ({"type": "string", "pattern": "^a$"}, "a\n", "x: Invalid value: \"a\\n\": x in body should match '^a$'"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, ["a", "a"], 'x: Invalid value: "": x in body shouldn\'t contain duplicates'),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, 1.5, 'x: Invalid value: "number": x in body must be of type integer,string: "number"'),
        ({"type": "string", "not": {"pattern": "^a"}}, "ab", '<nil>: Invalid value: "": "x" must not validate the schema (not)'),
        ({"type": "string", "allOf": [{"minLength": 3}]}, "ab", 'x: Invalid value: "ab": x in body should be at least 3 chars long'),
    ],
)  # fmt: skip
def test_a_value_is_refused_with_kubernetes_message(field: dict[str, Any], value: Any, message: str) -> None:
    assert texts(of(x=field), {"x": value})[0] == message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "integer"}, 2.0),
        ({"type": "number"}, 2),
        ({"type": "number", "multipleOf": 0.1}, 0.3),
        ({"type": "string", "format": "made-up"}, "anything"),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05.678Z"),
        ({"x-kubernetes-int-or-string": True}, "http"),
        ({"type": "string", "maxLength": 4}, "äöüß"),
        ({}, {"any": ["thing"]}),
    ],
)
def test_a_value_is_accepted(field: dict[str, Any], value: Any) -> None:
    assert texts(of(x=field), {"x": value}) == []


def test_map_keys_are_printed_as_in_kubernetes() -> None:
    limits = {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
    }
    assert texts(of(m=limits), {"m": {"a b": ["x"]}}) == [
        'm.a b[0]: Invalid value: "string": m.a b[0] in body must be of type integer: "string"'
    ]
    assert texts(of(m=limits), {"m": {"a": [1, 1]}}) == ["m[a][1]: Duplicate value: 1"]


def test_one_and_true_are_different_list_map_keys() -> None:
    schema = of(s={"type": "array", "x-kubernetes-list-type": "set", "items": {}})
    assert texts(schema, {"s": [1, True, "1", 1.5]}) == []
    assert texts(schema, {"s": ["a", "b", "a", "a"]}) == ['s[2]: Duplicate value: "a"']


def test_an_error_of_an_unchanged_value_is_ratcheted() -> None:
    schema = of(l=LIST_MAP, n={"type": "integer", "maximum": 5})
    old = {"l": [{"name": "a", "size": 9}, {"name": "b", "size": 1}], "n": 9}
    assert texts(schema, {"l": [{"name": "b", "size": 2}, {"name": "a", "size": 9}], "n": 9}, old) == []
    assert texts(schema, {"l": [{"name": "a", "size": 8}], "n": 9}, old) == [
        "l[0].size: Invalid value: 8: l[0].size in body should be less than or equal to 5"
    ]
    assert texts(schema, {"l": [{"name": "new", "size": 9}], "n": 9}, old)[0].startswith("l[0].size: Invalid value: 9")


def test_an_old_duplicate_does_not_block_an_update() -> None:
    schema = of(l=LIST_MAP)
    twice = {"l": [{"name": "a"}, {"name": "a"}]}
    assert texts(schema, twice) == ['l[1]: Duplicate value: {"name":"a"}']
    assert texts(schema, {"l": [*twice["l"], {"name": "b"}]}, twice) == []


def test_rules_do_not_run_on_a_broken_structure() -> None:
    schema = StructuralSchema.compile(
        {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "maximum": 1}},
            "x-kubernetes-validations": [{"rule": "self.a > 0", "message": "a is positive"}],
        }
    )
    assert [str(e) for e in check_create(schema, {})] == [
        "a: Required value",
        f"<nil>: Invalid value: null: {NOT_CHECKED}",
    ]
    assert [str(e) for e in check_create(schema, {"a": 0, "b": 2})] == [
        "b: Invalid value: 2: b in body should be less than or equal to 1",
        "<nil>: Invalid value: a is positive",
    ]
    assert check_update(schema, {"a": 0}, {"a": 0}) == []


def test_a_pattern_that_go_would_refuse_is_refused() -> None:
    with pytest.raises(SchemaError, match="unsupported Perl syntax"):
        of(x={"type": "string", "pattern": "^(?=a)"}).validate({"x": "a"})


def test_a_reference_is_refused() -> None:
    with pytest.raises(SchemaError, match="no references"):
        of(x={"$ref": "a.b"}).validate({"x": 1})


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["l", "n", "name", "size", "m"]), inner)
    ),
    max_leaves=12,
)
ANY = of(
    l=LIST_MAP,
    n={"type": "integer", "default": 3},
    m={"type": "object", "additionalProperties": {"type": "string", "minLength": 2}},
)


@given(_json)
def test_any_value_is_validated_without_a_crash(value: Any) -> None:
    before = copy.deepcopy(value)
    assert isinstance(ANY.validate(value), list)
    assert value == before
    ANY.prune(value)
    assert ANY.prune(value) == []
    ANY.default(value)
    once = copy.deepcopy(value)
    ANY.default(value)
    assert value == once
    items = value.get("l") if isinstance(value, dict) else None
    if (
        isinstance(items, list)
        and all(isinstance(item, dict) and "name" in item for item in items)
        and not any(one["name"] == other["name"] for one, other in itertools.combinations(items, 2))
    ):
        # Unchanged is never refused, as long as each list item has a name of its own to be known by.
        assert ANY.validate(value, value) == []
