"""Defaulting: fill in the defaults that a schema declares, in objects that exist.

In: a value and its schema. Out: the value, changed in place. A null where the schema allows none counts as absent: it
is replaced by the default, or dropped if there is none. Null list items stay, and validation reports them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema


def default(schema: StructuralSchema, value: Any) -> None:
    """Fill in defaults in place."""
    if type(value) is dict:
        _default_object(schema, value)
    elif type(value) is list:
        items = schema.items
        if items is None:
            return
        for index, item in enumerate(value):
            if item is None and not items.nullable and items.has_default:
                value[index] = item = _copy(items.default_value)
            if type(item) is dict or type(item) is list:
                default(items, item)


def _default_object(schema: StructuralSchema, value: dict[str, Any]) -> None:
    for name in _defaulted_names(schema):
        child = schema.field(name)
        assert child is not None
        if name not in value or (value[name] is None and not child.nullable):
            value[name] = _copy(child.default_value)
    dropped: list[str] = []
    children = schema._children
    for name, member in value.items():
        if member is None:
            child = schema.member(name)
            if child is not None and not child.nullable:
                if child.has_default:
                    value[name] = _copy(child.default_value)
                else:
                    dropped.append(name)
        elif type(member) is dict or type(member) is list:
            child = children.get(name) or schema.member(name)
            if child is not None:
                default(child, member)
    for name in dropped:
        del value[name]


def _defaulted_names(schema: StructuralSchema) -> tuple[str, ...]:
    names = schema.defaulted
    if names is None:
        raw = schema.raw.get("properties") or {}
        names = schema.defaulted = tuple(name for name, field in raw.items() if field.get("default") is not None)
    return names


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
