# ruff: noqa: E501 - tables of whole sentences read better on one line
"""JSON patch and merge patch do what their RFCs say and never change their inputs."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.jsonpatch import PatchError, PatchTestFailed, json_patch, merge_patch

DOCUMENT: dict[str, Any] = {"a": {"b": [1, 2, 3]}, "c/d": "x", "n": None}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/b/1", "value": 9}, {**DOCUMENT, "a": {"b": [1, 9, 2, 3]}}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/new", "value": None}, {**DOCUMENT, "new": None}),
        ({"op": "remove", "path": "/a/b/0"}, {**DOCUMENT, "a": {"b": [2, 3]}}),
        ({"op": "replace", "path": "/c~1d", "value": 1}, {**DOCUMENT, "c/d": 1}),
        ({"op": "move", "from": "/a/b", "path": "/m"}, {"a": {}, "c/d": "x", "n": None, "m": [1, 2, 3]}),
        ({"op": "copy", "from": "/c~1d", "path": "/a/c"}, {**DOCUMENT, "a": {"b": [1, 2, 3], "c": "x"}}),
        ({"op": "test", "path": "/a/b", "value": [1, 2, 3]}, DOCUMENT),
        ({"op": "test", "path": "/gone", "value": None}, DOCUMENT),
        ({"op": "replace", "path": "/new", "value": 1}, {**DOCUMENT, "new": 1}),
        ({"op": "remove", "path": "/a/b/-1"}, {**DOCUMENT, "a": {"b": [1, 2]}}),
        ({"op": "replace", "path": "", "value": 5}, 5),
    ],
)
def test_operation(operation: dict[str, Any], expected: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    assert json_patch(DOCUMENT, [operation]) == expected
    assert before == DOCUMENT


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "remove", "path": "/gone"}, "error in remove for path: '/gone': Unable to remove nonexistent key: gone: missing value"),
        ({"op": "replace", "path": "/a/b/3", "value": 1}, "replace operation does not apply: doc is missing key: /a/b/3: missing value"),
        ({"op": "move", "from": "/gone", "path": "/a"}, "error in move for path: 'gone': Unable to remove nonexistent key: gone: missing value"),
        ({"op": "add", "path": "/a/b/x", "value": 1}, "error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax"),
        ({"op": "add", "path": "/x/y", "value": 1}, 'add operation does not apply: doc is missing path: "/x/y": missing value'),
        ({"op": "test", "path": "/c~1d", "value": "y"}, "testing value /c~1d failed: test failed"),
        ({"op": "add", "path": "/a/b/7", "value": 1}, "error in add for path: '/a/b/7': Unable to access invalid index: 7: invalid index referenced"),
        ({"op": "fly", "path": "/a"}, "Unexpected kind: fly"),
        ({"op": "add", "value": 1}, "operation missing path field: missing value"),
    ],
)  # fmt: skip
def test_operation_that_does_not_apply(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as error:
        json_patch(DOCUMENT, [operation])
    assert str(error.value) == message


def test_true_is_not_one() -> None:
    with pytest.raises(PatchTestFailed):
        json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": True}])


def test_merge_patch_removes_with_null_and_replaces_lists() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}, "l": [1]}, {"a": {"b": None, "d": {"e": None}}, "l": [2]}) == {
        "a": {"c": 2, "d": {}},
        "l": [2],
    }


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(_json, _json)
def test_merge_patch_settles(target: Any, patch: Any) -> None:
    # Nulls in a list that replaces an object stay the first time and go the second, as in the API server.
    twice = merge_patch(merge_patch(target, patch), patch)
    assert merge_patch(twice, patch) == twice
