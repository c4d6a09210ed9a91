"""The difference of two values seen through their node: which fields were added, modified and removed."""

from __future__ import annotations

from typing import Any, NamedTuple

from trainwright.embedded.apiserver.fieldmanager.fieldset import LEAF, FieldSet, build
from trainwright.embedded.apiserver.fieldmanager.listitems import grouped
from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode, MapNode, Node
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.schema.jsonobject import Json

_MISSING: Any = object()


class Comparison(NamedTuple):
    """Three sets of fields. `compare` fills them while it walks; afterwards nobody changes them."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def compare(node: Node, old: Any, new: Any) -> Comparison:
    result = Comparison({}, {}, {})
    if not same(old, new):
        _compare(node, old, new, result)
    return result


def _compare(node: Node, old: Any, new: Any, out: Comparison) -> None:
    """Put the differences of two maps or two lists into `out`. One side may be missing or null: it counts as empty."""
    left = node.shape(new if old is _MISSING else old)
    right = node.shape(old if new is _MISSING else new)
    if isinstance(left, MapNode) and isinstance(right, MapNode):
        _compare_maps(right, old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}, out)
    elif isinstance(left, ListNode) and isinstance(right, ListNode):
        _compare_lists(right, old if isinstance(old, list) else [], new if isinstance(new, list) else [], out)


def _compare_maps(node: MapNode, old: Json, new: Json, out: Comparison) -> None:
    for name, value in old.items():
        if name not in new:
            _compare_element(f"f:{name}", node.child(name), value, _MISSING, out)
    for name, value in new.items():
        before = old.get(name, _MISSING)
        if before is _MISSING or not same(before, value):
            _compare_element(f"f:{name}", node.child(name), before, value, out)


def _compare_lists(node: ListNode, old: list[Any], new: list[Any], out: Comparison) -> None:
    befores, afters = grouped(node, old), grouped(node, new)
    for element in {**befores, **afters}:
        before, after = befores.get(element, []), afters.get(element, [])
        if len(before) > 1 or len(after) > 1:  # duplicates are compared as one value
            _compare_leaf(element, before or _MISSING, after or _MISSING, out)
            continue
        one, other = before[0] if before else _MISSING, after[0] if after else _MISSING
        if not same(one, other):
            _compare_element(element, node.item, one, other, out)


def _compare_element(element: str, node: Node, old: Any, new: Any, out: Comparison) -> None:
    """Two different values of one field or item, of which one may be missing."""
    if _is_leaf(node, old, new):
        _compare_leaf(element, old, new, out)
        if old is not _MISSING and new is not _MISSING:
            _compare_shapes(element, node, old, new, out)
        return
    below = Comparison({}, {}, {})
    _compare(node, old, new, below)
    added = build(old is _MISSING, below.added)
    removed = build(new is _MISSING, below.removed)
    if added is not None:
        out.added[element] = added
    if below.modified:
        out.modified[element] = below.modified
    if removed is not None:
        out.removed[element] = removed


def _compare_leaf(element: str, old: Any, new: Any, out: Comparison) -> None:
    if old is _MISSING:
        out.added[element] = LEAF
    elif new is _MISSING:
        out.removed[element] = LEAF
    elif not same(old, new):
        out.modified[element] = LEAF


def _compare_shapes(element: str, node: Node, old: Any, new: Any, out: Comparison) -> None:
    """If a value changed its shape, the members of an old map are removed and those of a new map are added."""
    left, right = node.shape(old), node.shape(new)
    if type(left) is type(right):
        return
    below = Comparison({}, {}, {})
    if isinstance(left, MapNode) and not left.atomic:
        _compare(node, old, _MISSING, below)
    if isinstance(right, MapNode) and not right.atomic:
        _compare(node, _MISSING, new, below)
    if below.added:
        out.added[element] = below.added
    if below.removed:
        out.removed[element] = below.removed


def _is_leaf(node: Node, old: Any, new: Any) -> bool:
    """Whether two values are compared as a whole."""
    left = None if old is _MISSING else node.shape(old)
    right = None if new is _MISSING else node.shape(new)
    if old is not _MISSING and new is not _MISSING and type(left) is not type(right):
        return True
    shape = left if new is _MISSING else right
    if shape is None or shape.atomic:
        return True
    # If both are empty they are compared as a whole: an empty map and null differ.
    return not (old is not _MISSING and old) and not (new is not _MISSING and new)
