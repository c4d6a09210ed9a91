"""Strategic merge follows Kubernetes' rules, the order of merged lists included."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.strategic import UNTYPED, MergeField, StrategicMergeError, strategic_merge


class Table:
    """A merge schema from a table of list names and their merge keys; an empty key merges a list of scalars."""

    def __init__(self, keys: dict[str, str]) -> None:
        self.keys = keys

    def merge_field(self, name: str) -> MergeField:
        return MergeField(self, name in self.keys, self.keys.get(name, ""))


POD = Table({"volumes": "name", "containers": "name", "env": "name", "pull": "name", "finalizers": ""})


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


@pytest.mark.parametrize(
    ("original", "patch", "merged"),
    [
        (["v1", "v2"], ["v9", "v2"], ["v9", "v1", "v2"]),
        (["p1"], ["p2"], ["p2", "p1"]),
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b", "c"], ["b"], ["a", "b", "c"]),
        (["a", "b"], ["x", "b", "y"], ["x", "a", "b", "y"]),
        ([], ["x"], ["x"]),
    ],
)
def test_a_merged_list_has_kubernetes_order(original: list[str], patch: list[str], merged: list[str]) -> None:
    result = strategic_merge(
        {"volumes": [{"name": n} for n in original]}, {"volumes": [{"name": n} for n in patch]}, POD
    )
    assert names(result["volumes"]) == merged


def test_items_merge_key_by_key_and_others_stay() -> None:
    original = {"containers": [{"name": "node", "image": "a", "env": [{"name": "X", "value": "1"}], "args": ["1"]}]}
    patch = {"containers": [{"name": "node", "env": [{"name": "Y", "value": "2"}], "args": ["2"]}]}
    before = copy.deepcopy(original)
    assert strategic_merge(original, patch, POD) == {
        "containers": [
            {
                "name": "node",
                "image": "a",
                "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
                "args": ["2"],
            }
        ]
    }
    assert original == before


def test_directives_delete_replace_and_retain() -> None:
    original = {"volumes": [{"name": "a"}, {"name": "b"}], "finalizers": ["x", "y"], "m": {"k": 1, "l": 2}}
    assert strategic_merge(original, {"volumes": [{"$patch": "delete", "name": "a"}]}, POD)["volumes"] == [
        {"name": "b"}
    ]
    replaced = strategic_merge(original, {"volumes": [{"$patch": "replace"}, {"name": "z"}]}, POD)
    assert replaced["volumes"] == [{"name": "z"}]
    assert strategic_merge(original, {"$deleteFromPrimitiveList/finalizers": ["x"]}, POD)["finalizers"] == ["y"]
    assert strategic_merge(original, {"m": {"$retainKeys": ["l", "n"], "n": 3}}, POD)["m"] == {"l": 2, "n": 3}
    assert strategic_merge(original, {"m": {"$patch": "replace", "q": 1}}, POD)["m"] == {"q": 1}
    assert strategic_merge(original, {"m": None}, POD).keys() == {"volumes", "finalizers"}
    ordered = strategic_merge(original, {"$setElementOrder/volumes": [{"name": "b"}, {"name": "a"}]}, POD)
    assert names(ordered["volumes"]) == ["b", "a"]


def test_a_list_item_without_its_merge_key_is_refused() -> None:
    with pytest.raises(StrategicMergeError, match="does not contain declared merge key: name"):
        strategic_merge({"volumes": [{"name": "a"}]}, {"volumes": [{"x": 1}]}, POD)


def test_a_patch_out_of_its_declared_order_is_refused() -> None:
    patch = {"$setElementOrder/volumes": [{"name": "b"}, {"name": "a"}], "volumes": [{"name": "a"}, {"name": "b"}]}
    with pytest.raises(StrategicMergeError, match="doesn't match"):
        strategic_merge({"volumes": [{"name": "a"}]}, patch, POD)


def test_without_a_schema_lists_are_replaced() -> None:
    assert strategic_merge({"a": {"x": 1}, "l": [1]}, {"a": {"y": 2}, "l": [2]}, UNTYPED) == {
        "a": {"x": 1, "y": 2},
        "l": [2],
    }


_items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcdef"), "v": st.integers(0, 2)}),
    max_size=5,
    unique_by=lambda item: item["name"],
)


@given(_items, _items)
def test_merging_twice_has_the_effect_of_merging_once(original: Any, patch: Any) -> None:
    once = strategic_merge({"volumes": original}, {"volumes": patch}, POD)
    values = {item["name"]: item["v"] for item in once["volumes"]}
    assert values == {i["name"]: i["v"] for i in original} | {i["name"]: i["v"] for i in patch}
    # Patched items keep the patch's order, the others theirs.
    assert [n for n in names(once["volumes"]) if n in names(patch)] == names(patch)
    rest = [n for n in names(original) if n not in names(patch)]
    assert [n for n in names(once["volumes"]) if n not in names(patch)] == rest


def test_objects_without_a_merge_key_may_be_ordered() -> None:
    patch = {"l": [{"a": 1}, {"b": [2]}], "$setElementOrder/l": [{"a": 1}, {"b": [2]}]}
    assert strategic_merge({}, patch, UNTYPED) == {"l": [{"a": 1}, {"b": [2]}]}
    wrong = {**patch, "$setElementOrder/l": [{"c": 3}]}
    with pytest.raises(StrategicMergeError, match="doesn't match"):
        strategic_merge({}, wrong, UNTYPED)


@pytest.mark.parametrize("patch", [[[]], ["a", ["b"]], [{"name": "a"}, []]])
def test_lists_within_a_merged_list_are_refused(patch: list[Any]) -> None:
    with pytest.raises(StrategicMergeError, match="lists of lists are not supported"):
        strategic_merge({"finalizers": ["x"]}, {"finalizers": patch}, POD)


def test_one_and_true_are_two_items_of_a_merged_list() -> None:
    assert strategic_merge({"finalizers": [1]}, {"finalizers": [True]}, POD) == {"finalizers": [True, 1]}
