"""An applied configuration merged into a live object: applied values win, everything else stays."""

from __future__ import annotations

from collections import deque
from typing import Any

from trainwright.embedded.apiserver.fieldmanager.listitems import TypedError, item_element
from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode, MapNode, Node
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.schema.jsonobject import Json

_MISSING: Any = object()


def merge(node: Node, live: Any, applied: Any) -> Any:
    """The merged value, which may share parts with both inputs. `applied` has passed `check`."""
    left, right = node.shape(live), node.shape(applied)
    if type(left) is not type(right) or right is None or right.atomic or not (live or applied):
        return applied
    if isinstance(right, MapNode):
        return _merge_maps(right, live or {}, applied or {}) or None
    return _merge_lists(right, live or [], applied or []) or None


def _merge_member(node: Node, live: Any, applied: Any) -> Any:
    if live is _MISSING:
        return applied
    return live if same(live, applied) else merge(node, live, applied)


def _merge_maps(node: MapNode, live: Json, applied: Json) -> Json:
    result = dict(live)
    for name, value in applied.items():
        result[name] = _merge_member(node.child(name), live.get(name, _MISSING), value)
    return result


def _merge_lists(node: ListNode, live: list[Any], applied: list[Any]) -> list[Any]:
    """The applied items in their order, each after the live-only items that stood before it.

    `applied` has no duplicates, `live` may have some: those are not merged with, the applied item replaces them.
    """
    wanted = {item_element(node, item): item for item in applied}
    pending = deque(_identified(node, live))
    known: dict[str, Any] = {}
    for element, item in pending:
        known[element] = _MISSING if element in known else item
    shared = deque(element for element in wanted if element in known)
    merged: list[Any] = []
    for element, item in wanted.items():
        merged += _live_only_before(element, pending, wanted, shared[0] if shared else None)
        merged.append(_merge_member(node.item, known.get(element, _MISSING), item))
        if shared and shared[0] == element:
            shared.popleft()
    merged += [item for element, item in pending if element not in wanted]
    return merged


def _identified(node: ListNode, live: list[Any]) -> list[tuple[str, Any]]:
    """Live items with their path elements; an item without identity gets a made-up one, so that it stays as it is."""
    found: list[tuple[str, Any]] = []
    for index, item in enumerate(live):
        try:
            found.append((item_element(node, item), item))
        except TypedError:
            found.append((f"?:{index}", item))
    return found


def _live_only_before(
    element: str, pending: deque[tuple[str, Any]], wanted: dict[str, Any], next_shared: str | None
) -> list[Any]:
    """Take from `pending` the live items that come before the applied `element`, and return those nobody applied.

    `next_shared` is the first of the applied elements still to come that is also live. Live items which are applied
    further down or were applied further up are passed over: their place is the applied one.
    """
    kept: list[Any] = []
    while pending and pending[0][0] != next_shared:
        head, item = pending.popleft()
        if head not in wanted:
            kept.append(item)
        elif next_shared is None:
            break
    if pending and pending[0][0] == element:
        pending.popleft()
    return kept
