"""The fields that a value sets, which its manager will own (structured-merge-diff's ToFieldSet)."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.fieldmanager.fieldset import LEAF, FieldSet, build
from trainwright.embedded.apiserver.fieldmanager.listitems import grouped
from trainwright.embedded.apiserver.fieldmanager.nodes import SCALAR, ListNode, MapNode, Node
from trainwright.schema.jsonobject import Json


def fields_of(node: Node, value: Any) -> FieldSet:
    """Leaves, list items, and keys of free maps."""
    return _below(node, value) or {}


def _below(node: Node, value: Any) -> FieldSet | None:
    """The set below one element: LEAF for a value owned as a whole, None for a value that sets no field."""
    shape = node.shape(value)
    if shape is None or shape.atomic:
        return LEAF
    if isinstance(shape, MapNode):
        return _map_fields(shape, value or {}) or None
    return _list_fields(shape, value) or None


def _map_fields(node: MapNode, value: Json) -> FieldSet:
    result: FieldSet = {}
    for name, member in value.items():
        declared = node.fields.get(name)
        subset = _below(declared or node.element or SCALAR, member)
        # A declared struct is a member only if it is empty or null: otherwise its fields stand for it.
        is_leaf = subset is not None and not subset
        kept = build(declared is None or member is None or member == {} or is_leaf, subset or {})
        if kept is not None:
            result[f"f:{name}"] = kept
    return result


def _list_fields(node: ListNode, items: list[Any] | None) -> FieldSet:
    result: FieldSet = {}
    for element, found in grouped(node, items).items():
        subset = _below(node.item, found[0]) if len(found) == 1 else LEAF
        result[element] = build(True, subset or {}) or LEAF
    return result
