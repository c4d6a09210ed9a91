"""Old and new values held against each other: which old item a list item was, and whether a value changed at all.

Items of a list have an identity only by their list-map keys; everything else in a list is new each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .gotext import json_text

if TYPE_CHECKING:
    from .structural import StructuralSchema


def old_items(schema: StructuralSchema, old: Any) -> Callable[[Any], Any] | None:
    """Finds the old item with the same list-map keys; None for lists whose items have no identity."""
    keys = schema.list_map_keys
    if schema.list_type != "map" or not keys or not isinstance(old, list):
        return None
    known: dict[Any, Any] = {}
    for item in old:
        identity = _identity(schema, keys, item)
        if identity is not None:
            known.setdefault(identity, item)
    return lambda item: known.get(_identity(schema, keys, item))


def _identity(schema: StructuralSchema, keys: tuple[str, ...], item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    items = schema.items
    values: list[Any] = []
    for key in keys:
        child = items.field(key) if items is not None else None
        values.append(item.get(key, child.default_value if child is not None and child.has_default else None))
    return json_text(values)


def same(value: Any, old: Any, schema: StructuralSchema | None) -> bool:
    """Deep equality; keyed lists and sets compare without their order."""
    if type(value) is not type(old):
        return False
    if isinstance(value, dict):
        if value.keys() != old.keys():
            return False
        return all(same(value[k], old[k], schema.member(k) if schema is not None else None) for k in value)
    if isinstance(value, list):
        if len(value) != len(old):
            return False
        items = schema.items if schema is not None else None
        matched = old_items(schema, old) if schema is not None else None
        if matched is not None:
            return all((before := matched(item)) is not None and same(item, before, items) for item in value)
        return all(same(a, b, items) for a, b in zip(value, old, strict=True))
    return bool(value == old)
