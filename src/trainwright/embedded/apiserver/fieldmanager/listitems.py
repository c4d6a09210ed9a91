"""Items of associative lists: their path elements, which tell one item from another.

An item of a keyed list is known by the values of its keys (`k:{"name":"a"}`), an item of a set by its value (`v:"a"`).
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode


class TypedError(ValueError):
    """An item without identity; the message is the one of structured-merge-diff."""


def item_element(node: ListNode, item: Any) -> str:
    """The path element of one item. Raises `TypedError`."""
    return _keyed_element(node, item) if node.keys else _set_element(item)


def _set_element(item: Any) -> str:
    if item is None:
        raise TypedError("associative list without keys has an element that's an explicit null")
    if isinstance(item, dict | list):
        what = "map" if isinstance(item, dict) else "list"
        raise TypedError(f"associative list without keys has an element that's a {what} type")
    return "v:" + json.dumps(item, ensure_ascii=False, separators=(",", ":"))


def _keyed_element(node: ListNode, item: Any) -> str:
    if item is None:
        raise TypedError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise TypedError("associative list with keys may not have non-map elements")
    keys: dict[str, Any] = {}
    for name in node.keys:
        if name in item:
            keys[name] = item[name]
        elif name in node.defaults:
            keys[name] = node.defaults[name]
    if not keys:
        raise TypedError(
            f'associative list with keys has an element that omits key field "{node.keys[0]}"'
            " (and doesn't have default value)"
        )
    if len(keys) > 1:
        keys = dict(sorted(keys.items()))
    return "k:" + msgspec.json.encode(keys).decode()


def grouped(node: ListNode, items: list[Any] | None) -> dict[str, list[Any]]:
    """Items by path element, in order. Items without identity, which only a live object can hold, are left out."""
    found: dict[str, list[Any]] = {}
    for item in items or ():
        try:
            found.setdefault(item_element(node, item), []).append(item)
        except TypedError:
            continue
    return found
