"""One value or two seen through their node: fields, differences, removal, merging, validation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.comparison import compare
from trainwright.embedded.apiserver.fieldmanager.fields import fields_of
from trainwright.embedded.apiserver.fieldmanager.merge import merge
from trainwright.embedded.apiserver.fieldmanager.nodes import Builder, Node, object_node
from trainwright.embedded.apiserver.fieldmanager.removal import remove
from trainwright.embedded.apiserver.fieldmanager.validation import check

TEXT = {"type": "string"}
PORT = {
    "type": "object",
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "name": TEXT,
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "free": {"type": "object", "additionalProperties": TEXT},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": TEXT, "b": TEXT}},
        "struct": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        "list": {"type": "array", "items": TEXT},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "items": PORT,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "named": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": TEXT, "value": TEXT}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "either": {"x-kubernetes-int-or-string": True},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
NODE = Builder().build(SCHEMA)
LETTER = st.sampled_from("xyz")
A_PORT: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"port": st.integers(1, 3)}, optional={"name": LETTER}
)
PORTS = st.lists(A_PORT, min_size=1, max_size=3, unique_by=lambda port: int(port["port"]))
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "text": LETTER,
        "free": st.dictionaries(LETTER, LETTER, min_size=1, max_size=3),
        "whole": st.dictionaries(st.sampled_from("ab"), LETTER, min_size=1, max_size=2),
        "struct": st.dictionaries(st.sampled_from("ab"), LETTER, min_size=1, max_size=2),
        "list": st.lists(LETTER, min_size=1, max_size=3),
        "set": st.lists(LETTER, min_size=1, max_size=3, unique=True),
        "ports": PORTS,
    },
)


def test_the_fields_of_a_value_follow_its_schema() -> None:
    value = {
        "text": "t",
        "free": {"k": "v"},
        "whole": {"a": "1"},
        "struct": {"a": "1"},
        "list": ["x"],
        "set": ["x"],
        "ports": [{"port": 80, "name": "web"}],
        "either": 1,
        "any": {"deep": {"er": 1}},
    }
    assert fields_of(NODE, value) == {
        "f:text": {},
        "f:free": {"f:k": {}},
        "f:whole": {},
        "f:struct": {"f:a": {}},
        "f:list": {},
        "f:set": {'v:"x"': {}},
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}},
        "f:either": {},
        "f:any": {"f:deep": {".": {}, "f:er": {}}},
    }


@pytest.mark.parametrize(("value", "fields"), [({}, {"f:struct": {}}), (None, {"f:struct": {}})])
def test_an_empty_or_null_struct_is_a_field_itself(value: Any, fields: Any) -> None:
    assert fields_of(NODE, {"struct": value}) == fields


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert not compare(NODE, value, {**value}).changed


@given(VALUES, VALUES)
def test_fields_added_one_way_are_removed_the_other_way(old: Any, new: Any) -> None:
    there, back = compare(NODE, old, new), compare(NODE, new, old)
    assert there.added == back.removed
    assert there.removed == back.added
    assert there.modified == back.modified


@given(VALUES, VALUES)
def test_added_fields_are_in_the_new_value_and_removed_ones_are_not(old: Any, new: Any) -> None:
    found = compare(NODE, old, new)
    after = set(fieldset.paths(fields_of(NODE, new)))
    assert set(fieldset.paths(fieldset.leaves(found.added))) <= after
    assert not set(fieldset.paths(fieldset.leaves(found.removed))) & after


@given(VALUES, VALUES)
def test_a_merge_holds_all_applied_fields_and_is_stable(live: Any, applied: Any) -> None:
    merged = merge(NODE, live, applied) or {}
    wanted, found = fields_of(NODE, applied), fields_of(NODE, merged)
    assert fieldset.difference(wanted, found) == {}
    assert merge(NODE, merged, applied) in (merged, None)


@given(VALUES)
def test_removing_every_field_leaves_nothing(value: Any) -> None:
    everything = fieldset.ensure_fields_are_members(fields_of(NODE, value), NODE)
    assert remove(NODE, value, everything) in (None, {})


@given(VALUES)
def test_removing_nothing_leaves_everything(value: Any) -> None:
    assert remove(NODE, value, {}) == value


def test_empty_and_null_differ_from_each_other() -> None:
    assert compare(NODE, {"struct": {}}, {"struct": None}).modified == {"f:struct": {}}
    assert compare(NODE, {"list": []}, {"list": None}).modified == {"f:list": {}}


def test_a_number_that_becomes_a_string_is_modified() -> None:
    assert compare(NODE, {"either": 1}, {"either": "1"}).modified == {"f:either": {}}


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ([1, 2, 3], [3, 1], [2, 3, 1]),
        ([1, 2], [4, 2], [1, 4, 2]),
        ([1, 2, 3], [2], [1, 2, 3]),
        ([], [2, 1], [2, 1]),
    ],
)
def test_applied_items_keep_their_order_and_live_only_items_keep_their_place(
    live: Any, applied: Any, merged: Any
) -> None:
    def ports(numbers: list[int]) -> list[dict[str, int]]:
        return [{"port": number} for number in numbers]

    assert merge(NODE, {"ports": ports(live)}, {"ports": ports(applied)}) == {"ports": ports(merged)}


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        (["x", "x", "y"], ["x"], ["x", "y"]),
        (["x", "x", "y"], ["x", "z"], ["x", "z", "y"]),
        (["y", "x", None, "x"], ["x"], ["y", "x", None]),
    ],
)
def test_an_applied_item_replaces_the_duplicates_in_a_live_list(live: Any, applied: Any, merged: Any) -> None:
    assert merge(NODE, {"set": live}, {"set": applied}) == {"set": merged}


def test_atomic_values_are_replaced_not_merged() -> None:
    live = {"whole": {"a": "1", "b": "2"}, "list": ["x", "y"]}
    assert merge(NODE, live, {"whole": {"a": "3"}, "list": ["z"]}) == {"whole": {"a": "3"}, "list": ["z"]}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"other": 1}, ".other: field not declared in schema"),
        ({"struct": {"c": "1"}}, ".struct.c: field not declared in schema"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            '.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
        (
            {"named": [{"value": "x"}]},
            ".named: element 0: associative list with keys has an element that omits key field"
            ' "name" (and doesn\'t have default value)',
        ),
        ({"ports": [None]}, ".ports: element 0: associative list with keys may not have a null element"),
        ({"struct": "text"}, '.struct: expected map, got "text"'),
        ({"text": {"a": 1}}, ".text: expected scalar, got &{map[a:1]}"),
    ],
)
def test_a_fault_is_reported_with_its_path(value: Any, fault: str) -> None:
    assert check(NODE, value) == [fault]


def test_duplicates_in_an_atomic_list_are_fine() -> None:
    assert check(NODE, {"list": ["a", "a"]}) == []


def test_the_metadata_of_every_object_is_that_of_kubernetes() -> None:
    node: Node = object_node({"type": "object", "properties": {"metadata": {"type": "object"}, "spec": SCHEMA}})
    value = {"metadata": {"finalizers": ["x"], "ownerReferences": [{"uid": "u", "name": "n"}], "labels": {"a": "b"}}}
    assert fields_of(node, value) == {
        "f:metadata": {
            "f:finalizers": {'v:"x"': {}},
            "f:ownerReferences": {'k:{"uid":"u"}': {}},
            "f:labels": {"f:a": {}},
        }
    }


def test_a_recursive_definition_is_built_once() -> None:
    definitions = {"T": {"type": "object", "properties": {"t": {"$ref": "#/definitions/T"}, "name": TEXT}}}
    node = Builder(definitions.__getitem__).build({"$ref": "#/definitions/T"})
    assert fields_of(node, {"t": {"t": {"name": "x"}}}) == {"f:t": {"f:t": {"f:name": {}}}}


ANY = Builder().build({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (True, 1), ([1], [True]), ({"a": 0}, {"a": False})])
def test_a_number_is_no_boolean(old: Any, new: Any) -> None:
    assert compare(ANY, {"z": old}, {"z": new}).changed
    assert repr(merge(ANY, {"z": old}, {"z": new})) == repr({"z": new})


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        (1, {"a": 1}, {"f:z": {"f:a": {}}}, {"f:z": {}}, {}),
        ({"a": 1}, [1], {}, {"f:z": {}}, {"f:z": {"f:a": {}}}),
        (None, {"a": 1}, {"f:z": {"f:a": {}}}, {}, {}),
        ({"a": 1}, None, {}, {}, {"f:z": {"f:a": {}}}),
        (None, {}, {}, {"f:z": {}}, {}),
        (None, 1, {}, {"f:z": {}}, {}),
    ],
)
def test_a_value_without_a_schema_may_change_its_shape(
    old: Any, new: Any, added: Any, modified: Any, removed: Any
) -> None:
    assert compare(ANY, {"z": old}, {"z": new}) == (added, modified, removed)


def test_null_applied_over_a_map_without_a_schema_leaves_the_map() -> None:
    assert merge(ANY, {"z": {"a": 1}}, {"z": None}) == {"z": {"a": 1}}
    assert merge(ANY, {"z": [1]}, {"z": None}) == {"z": None}


def test_an_item_may_lack_some_of_its_keys() -> None:
    assert check(NODE, {"ports": [{"name": "x"}]}) == []
    assert fields_of(NODE, {"ports": [{"name": "x"}]}) == {"f:ports": {'k:{"protocol":"TCP"}': {".": {}, "f:name": {}}}}


def test_an_int_or_string_of_a_custom_type_takes_any_value() -> None:
    assert check(NODE, {"either": {"a": 1}}) == []
