"""Sets of field paths: the laws of their algebra, and their form inside managedFields."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.entries import Identity, Managed, Owned, read, same_but_times, write
from trainwright.embedded.apiserver.fieldmanager.nodes import Builder

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"one"'])
PATHS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


def built(paths: frozenset[tuple[str, ...]]) -> fieldset.FieldSet:
    target: fieldset.FieldSet = {}
    for path in sorted(paths):
        fieldset.insert(target, path)
    return target


def members(subset: fieldset.FieldSet) -> frozenset[tuple[str, ...]]:
    return frozenset(fieldset.paths(subset))


@given(PATHS)
def test_a_set_holds_exactly_what_was_inserted_in_any_order(paths: frozenset[tuple[str, ...]]) -> None:
    backwards: fieldset.FieldSet = {}
    for path in sorted(paths, reverse=True):
        fieldset.insert(backwards, path)
    assert members(built(paths)) == members(backwards) == paths
    assert built(paths) == backwards


@given(PATHS, PATHS)
def test_union_difference_and_intersection_are_those_of_sets(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    assert fieldset.union(built(left), built(right)) == built(left | right)
    assert fieldset.difference(built(left), built(right)) == built(left - right)
    assert fieldset.intersection(built(left), built(right)) == built(left & right)


@given(PATHS, PATHS)
def test_the_operations_do_not_change_their_inputs(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    one, other = built(left), built(right)
    for operation in (fieldset.union, fieldset.difference, fieldset.intersection, fieldset.without):
        operation(one, other)
    assert (one, other) == (built(left), built(right))


@given(PATHS, PATHS)
def test_without_also_takes_what_is_below_a_member(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    kept = {path for path in left if not any(path[: len(gone)] == gone for gone in right)}
    assert members(fieldset.without(built(left), built(right))) == kept


@given(PATHS)
def test_leaves_are_the_members_without_children(paths: frozenset[tuple[str, ...]]) -> None:
    expected = {path for path in paths if not any(other != path and other[: len(path)] == path for other in paths)}
    assert members(fieldset.leaves(built(paths))) == expected


@given(st.dictionaries(st.sampled_from(["kubectl", "operator", "webhook"]), PATHS.filter(bool), max_size=3))
def test_entries_survive_the_way_through_json(owners: dict[str, frozenset[tuple[str, ...]]]) -> None:
    managed = Managed()
    for number, (name, paths) in enumerate(sorted(owners.items())):
        operation = ("Apply", "Update")[number % 2]
        key = Identity.of(name, operation, "v1", ("", "status")[number // 2])
        managed.fields[key] = Owned(built(paths), "v1")
        managed.times[key] = f"2026-01-0{number + 1}T00:00:00Z"
    entries = json.loads(json.dumps(write(managed)))
    again = read(entries)
    assert again is not None
    assert (again.fields, again.times) == (managed.fields, managed.times)
    assert write(again) == entries


def entry(**changes: Any) -> dict[str, Any]:
    whole = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**whole, "fieldsV1": {"f:a": {}}, **changes}


def test_malformed_entries_are_refused() -> None:
    assert read([entry()]) is not None
    for wrong in (
        entry(operation="Replace"),
        entry(apiVersion=""),
        entry(fieldsType="FieldsV2"),
        entry(fieldsV1={"a": {}}),
        entry(fieldsV1={"f:a": 1}),
        "text",
    ):
        assert read([wrong]) is None, wrong


def test_an_applier_has_one_entry_whatever_version_it_speaks() -> None:
    assert Identity.of("m", "Apply", "v1", "") == Identity.of("m", "Apply", "v2", "")
    assert Identity.of("m", "Update", "v1", "") != Identity.of("m", "Update", "v2", "")
    assert Identity.of("m", "Update", "v1", "") != Identity.of("m", "Update", "v1", "status")


def test_entries_that_differ_only_in_time_are_the_same() -> None:
    assert same_but_times([entry(time="2026-01-01T00:00:00Z")], [entry(time="2026-02-01T00:00:00Z")])
    assert not same_but_times([entry()], [entry(fieldsV1={"f:b": {}})])
    assert not same_but_times([entry()], [entry(), entry(manager="other")])
    assert same_but_times(None, [])


def test_entries_are_ordered_by_operation_then_time_then_manager() -> None:
    managed = Managed()
    for name, operation, time in (
        ("b", "Update", "3"),
        ("a", "Update", "3"),
        ("z", "Apply", "9"),
        ("c", "Update", "1"),
    ):
        key = Identity.of(name, operation, "v1", "")
        managed.fields[key] = Owned({"f:a": {}}, "v1")
        managed.times[key] = time
    assert [found["manager"] for found in write(managed)] == ["z", "c", "a", "b"]


def test_paths_are_printed_as_in_conflict_messages() -> None:
    path = ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"x"', "i:3")
    assert fieldset.text(path) == '.spec[containerPort=80,protocol="TCP"][="x"][3]'


def test_struct_fields_with_members_below_become_members() -> None:
    node = Builder().build(
        {"type": "object", "properties": {"s": {"type": "object", "additionalProperties": {"type": "string"}}}}
    )
    assert fieldset.ensure_fields_are_members({"f:s": {"f:k": {}}}, node) == {"f:s": {".": {}, "f:k": {}}}
    assert fieldset.ensure_fields_are_members({"f:free": {"f:k": {}}}, node) == {"f:free": {"f:k": {}}}


def test_paths_are_listed_in_the_order_of_messages_members_first() -> None:
    subset: fieldset.FieldSet = {
        "f:spec": {
            'k:{"name":"b"}': {"f:x": {}},
            'k:{"name":"a"}': {".": {}, "f:deep": {"f:x": {}}, "f:a": {}},
            "f:z": {},
        },
        "f:data": {},
    }
    assert [fieldset.text(path) for path in fieldset.paths(subset)] == [
        ".data",
        ".spec.z",
        '.spec[name="a"]',
        '.spec[name="a"].a',
        '.spec[name="a"].deep.x',
        '.spec[name="b"].x',
    ]
    numbers: fieldset.FieldSet = {'k:{"port":443}': {}, 'k:{"port":80}': {}, 'v:"x"': {}, "v:10": {}, "v:9": {}}
    assert [path[0] for path in fieldset.paths(numbers)] == ['k:{"port":80}', 'k:{"port":443}', "v:9", "v:10", 'v:"x"']
