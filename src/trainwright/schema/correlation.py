"""Correlation of old and new values: which old item a list item was, and whether a value changed.

List items are matched by their list-map keys, if all of them are set; other items have no old counterpart. Members that
the schema does not declare cannot be compared, so an object that has one (metadata, at the root) counts as changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

Identity = tuple[Any, ...]


def old_items(schema: StructuralSchema, old: Any) -> Callable[[Any], Any] | None:
    """A function that finds the old item with the same list-map keys; None for lists without such keys."""
    keys = schema.list_map_keys
    if schema.list_type != "map" or not keys or not isinstance(old, list) or not old:
        return None
    known: dict[Identity, Any] = {}
    for item in old:
        identity = _identity(keys, item)
        if identity is not None:
            known.setdefault(identity, item)

    def find(item: Any) -> Any:
        identity = _identity(keys, item)
        return known.get(identity) if identity is not None else None

    return find


def _identity(keys: tuple[str, ...], item: Any) -> Identity | None:
    if not isinstance(item, dict):
        return None
    values: list[Any] = []
    for key in keys:
        value = item.get(key)
        if value is None or isinstance(value, list | dict):
            return None
        # 1 and True are the same dictionary key in Python but two values in JSON.
        values.append((type(value), value))
    return tuple(values)


def same(value: Any, old: Any, schema: StructuralSchema) -> bool:
    """Whether a value is unchanged. The order of keyed lists does not matter."""
    if type(value) is not type(old):
        return False
    if isinstance(value, dict):
        if value.keys() != old.keys():
            return False
        for name, member in value.items():
            child = schema.member(name)
            if child is None or not same(member, old[name], child):
                return False
        return True
    if isinstance(value, list):
        return _same_list(value, old, schema)
    return bool(value == old)


def _same_list(value: list[Any], old: list[Any], schema: StructuralSchema) -> bool:
    if len(value) != len(old):
        return False
    items, matched = schema.items, old_items(schema, old)
    if matched is None or items is None:
        return identical(value, old)
    for item in value:
        before = matched(item)
        if before is None or not same(item, before, items):
            return False
    return True


def identical(left: Any, right: Any) -> bool:
    """Deep equality of JSON: a boolean is no number, an integer no float."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(identical(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(identical, left, right))
    return bool(left == right)
