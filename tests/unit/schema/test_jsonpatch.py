# ruff: noqa: E501 - tables of whole sentences read better on one line
"""JSON patch and merge patch: single operations, refusals, limits; inputs stay as they were.

`recorded_patches.jsonl` holds random patches applied by gopkg.in/evanphx/json-patch.v4 4.13, which kube-apiserver uses.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.schema.correlation import identical
from trainwright.schema.jsonpatch import MAX_COPIED_BYTES, PatchError, PatchTestFailed, json_patch, merge_patch

PATCHES = [json.loads(line) for line in Path(__file__).with_name("recorded_patches.jsonl").read_text().splitlines()]
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
        ({"op": "replace", "path": "", "value": [5]}, [5]),
    ],
)
def test_one_operation(operation: dict[str, Any], expected: Any) -> None:
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
        ({"op": "replace", "path": "", "value": 5}, "replace operation value must be object or array"),
        ({"op": "remove", "path": f"/a/b/{'9' * 5000}"}, f"error in remove for path: '/a/b/{'9' * 5000}': strconv.Atoi: parsing \"{'9' * 5000}\": value out of range"),
    ],
)  # fmt: skip
def test_an_operation_that_does_not_apply_is_refused(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as error:
        json_patch(DOCUMENT, [operation])
    assert str(error.value) == message


def test_a_test_tells_true_from_one() -> None:
    with pytest.raises(PatchTestFailed):
        json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": True}])


def doubling(times: int) -> list[Any]:
    return [{"op": "add", "path": "/a", "value": ["x" * 100]}, *[{"op": "copy", "from": "/a", "path": "/a/-"}] * times]


def test_a_patch_may_copy_three_megabytes_and_no_more() -> None:
    assert len(json.dumps(json_patch({}, doubling(14)))) < 2 * MAX_COPIED_BYTES
    with pytest.raises(PatchError, match="add more than 3145728 bytes"):
        json_patch({}, doubling(60))


def test_a_document_nested_too_deeply_is_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(5000):
        document = {"a": document}
    with pytest.raises(PatchError, match="nested too deeply"):
        json_patch(document, [{"op": "copy", "from": "/a", "path": "/b"}])


def test_a_copy_is_independent_of_its_source() -> None:
    operations = [
        {"op": "add", "path": "/a/new", "value": []},
        {"op": "copy", "from": "/a", "path": "/c"},
        {"op": "add", "path": "/a/new/-", "value": 1},
    ]
    assert json_patch({"a": {}}, operations) == {"a": {"new": [1]}, "c": {"new": []}}


@pytest.mark.parametrize("case", PATCHES, ids=range(len(PATCHES)))
def test_a_random_patch_has_the_recorded_outcome(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case)
    apply = merge_patch if case["merge"] else json_patch
    if "error" in case:
        with pytest.raises(PatchError):
            apply(case["document"], case["patch"])
    else:
        assert identical(apply(case["document"], case["patch"]), case["value"])
    assert identical(case, before)


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
def test_a_merge_patch_applied_twice_is_stable(target: Any, patch: Any) -> None:
    # Nulls in a list that replaces an object stay the first time and are dropped the second time, as in kube-apiserver.
    twice = merge_patch(merge_patch(target, patch), patch)
    assert merge_patch(twice, patch) == twice
