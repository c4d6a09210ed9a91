"""Laws of merging, comparing and removing, on random objects."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.comparison import compare
from trainwright.embedded.apiserver.fieldmanager.fields import fields_of
from trainwright.embedded.apiserver.fieldmanager.merge import merge
from trainwright.embedded.apiserver.fieldmanager.nodes import object_node
from trainwright.embedded.apiserver.fieldmanager.removal import remove

NODE = object_node(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "steps": {"type": "array", "items": {"type": "string"}},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "v": {"type": "integer"}},
                        },
                    },
                },
            }
        },
    }
)
NAMES = st.sampled_from(["a", "b", "c", "d"])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 3),
        "labels": st.dictionaries(NAMES, NAMES, min_size=1, max_size=3),
        "steps": st.lists(NAMES, max_size=3),
        "tags": st.lists(NAMES, max_size=4, unique=True),
        "items": st.lists(NAMES, max_size=4, unique=True)
        .flatmap(
            lambda names: st.tuples(
                *(st.fixed_dictionaries({"name": st.just(n), "v": st.integers(0, 2)}) for n in names)
            )
        )
        .map(list),
    },
)
OBJECTS = SPECS.map(lambda spec: {"metadata": {}, "spec": spec})


@given(OBJECTS, OBJECTS)
def test_the_merged_object_has_all_applied_fields(live: Any, applied: Any) -> None:
    assume(applied["spec"])  # an empty map is a leaf of its own, and merging into it keeps what is there
    merged = merge(NODE, live, applied)
    missing = fieldset.difference(fields_of(NODE, applied), fields_of(NODE, merged))
    assert not fieldset.leaves(missing)
    assert merge(NODE, merged, applied) == merged


@given(OBJECTS)
def test_an_object_does_not_differ_from_itself(obj: Any) -> None:
    assert not compare(NODE, obj, obj).changed


@given(OBJECTS, OBJECTS)
def test_objects_that_differ_in_more_than_order_are_changed(old: Any, new: Any) -> None:
    found = compare(NODE, old, new)
    assert found.changed == (old != new) or _only_order_differs(old, new)


def _only_order_differs(old: Any, new: Any) -> bool:
    def unordered(spec: Any) -> Any:
        return {
            **spec,
            "tags": sorted(spec.get("tags") or ()),
            "items": sorted(spec.get("items") or (), key=lambda item: str(item["name"])),
        }

    return bool(unordered(old["spec"]) == unordered(new["spec"]))


@given(OBJECTS)
def test_removing_all_fields_leaves_nothing_of_the_spec(obj: Any) -> None:
    gone = fieldset.ensure_fields_are_members(fields_of(NODE, obj), NODE)
    left = remove(NODE, obj, gone) or {}
    assert not fieldset.leaves(fields_of(NODE, {"metadata": {}, "spec": left.get("spec")}).get("f:spec", {}))
