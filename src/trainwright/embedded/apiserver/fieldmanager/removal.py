"""A value without some of its fields."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet, children_of, is_member
from trainwright.embedded.apiserver.fieldmanager.listitems import TypedError, item_element
from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode, MapNode, Node
from trainwright.schema.jsonobject import Json


def remove(node: Node, value: Any, gone: FieldSet) -> Any:
    """The value without the members of `gone`. A map or list that loses all it had becomes null."""
    if not gone:
        return value
    shape = node.shape(value)
    if isinstance(shape, MapNode) and isinstance(value, dict):
        return None if shape.atomic else _remove_fields(shape, value, gone) or None
    if isinstance(shape, ListNode) and isinstance(value, list):
        return None if shape.atomic else _remove_items(shape, value, gone) or None
    return value


def _remove_fields(node: MapNode, value: Json, gone: FieldSet) -> Json:
    kept: Json = {}
    for name, member in value.items():
        subset = gone.get(f"f:{name}")
        if subset is None:
            kept[name] = member
        elif not is_member(subset):
            kept[name] = remove(node.child(name), member, subset)
    return kept


def _remove_items(node: ListNode, items: list[Any], gone: FieldSet) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        try:
            subset = gone.get(item_element(node, item))
        except TypedError:  # an item without identity has no owner who could remove it
            subset = None
        if subset is None:
            kept.append(item)
        elif not is_member(subset):
            kept.append(remove(node.item, item, children_of(subset)))
    return kept
