"""An applied configuration merged into a live object: what is applied wins, what is not mentioned stays."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode, MapNode, Node
from trainwright.embedded.apiserver.fieldmanager.walk import TypedError, item_element
from trainwright.embedded.apiserver.storage.equality import same

_MISSING: Any = object()
_ANY = Node(scalar=True)


def merge(node: Node, live: Any, applied: Any) -> Any:
    """Neither input is changed; untouched parts are shared."""
    left, right = node.shape(live), node.shape(applied)
    if type(left) is not type(right) or right is None or right.atomic or not (live or applied):
        return applied
    if isinstance(right, MapNode):
        return _merge_maps(right, live or {}, applied or {}) or None
    return _merge_lists(right, live or [], applied or []) or None


def _merge_maps(node: MapNode, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    result = dict(live)
    for name, value in applied.items():
        before = live.get(name, _MISSING)
        if same(before, value):
            continue
        result[name] = (
            value if before is _MISSING else merge(node.fields.get(name, node.element) or _ANY, before, value)
        )
    return result


def _merge_lists(node: ListNode, live: list[Any], applied: list[Any]) -> list[Any]:
    """The order is the applied one; live items that are not applied keep their place between their neighbours."""
    right = [item_element(node, item) for item in applied]
    right_items = dict(zip(right, applied, strict=True))
    left: list[str] = []
    for index, item in enumerate(live):
        try:
            left.append(item_element(node, item))
        except TypedError:
            left.append(f"?:{index}")  # a malformed live item is kept as it is
    left_items: dict[str, Any] = {}
    doubled: set[str] = set()
    for element, item in zip(left, live, strict=True):
        if element in left_items:
            doubled.add(element)
        left_items[element] = item
    shared = [element for element in right if element in left_items]
    next_shared = shared.pop(0) if shared else None
    merged: set[str] = set()
    out: list[Any] = []

    def take(element: str) -> None:
        merged.add(element)
        before = _MISSING if element in doubled else left_items.get(element, _MISSING)
        item = right_items[element]
        out.append(item if before is _MISSING else before if same(before, item) else merge(node.item, before, item))

    li = ri = 0
    while li < len(left) or ri < len(right):
        if li < len(left) and ri < len(right):
            if left[li] == right[ri]:
                take(left[li])
                li += 1
                ri += 1
                next_shared = shared.pop(0) if shared else None
                continue
            if left[li] in right_items and next_shared is not None and next_shared != left[li]:
                li += 1  # shared, but not the one wanted in this round
                continue
        if li < len(left):
            if left[li] not in right_items:
                out.append(live[li])
                li += 1
                continue
            if left[li] in merged:
                li += 1
        if ri < len(right):
            take(right[ri])
            if next_shared == right[ri]:
                next_shared = shared.pop(0) if shared else None
            ri += 1
    return out
