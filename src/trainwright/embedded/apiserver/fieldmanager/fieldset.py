"""Sets of field paths, in the form they have inside `managedFields`, and their algebra.

A set is a dict from path element (`f:name`, `k:{"name":"x"}`, `v:"a"`) to the subset below it. An element with an empty
subset is a member; one with children is a member if it also has the key `.`. Only `insert` changes a set in place; the
results of all other functions may share parts with their inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from trainwright.embedded.apiserver.fieldmanager.nodes import Node

FieldSet: TypeAlias = "dict[str, FieldSet]"
LEAF: FieldSet = {}


def is_member(subset: FieldSet) -> bool:
    return not subset or "." in subset


def build(member: bool, children: FieldSet) -> FieldSet | None:
    """The subset of an element, None if the element is not a member and has no children."""
    if children:
        return {".": LEAF, **children} if member else children
    return LEAF if member else None


def children_of(subset: FieldSet) -> FieldSet:
    if "." not in subset:
        return subset
    return {element: child for element, child in subset.items() if element != "."}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or left is right:
        return right
    if not right:
        return left
    result = dict(left)
    for element, subset in right.items():
        mine = left.get(element)
        if mine is None:
            result[element] = subset
        elif mine is not subset and element != ".":
            member = is_member(mine) or is_member(subset)
            result[element] = build(member, union(children_of(mine), children_of(subset))) or LEAF
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left
    result: FieldSet = {}
    for element, subset in left.items():
        other = right.get(element)
        if other is None:
            result[element] = subset
            continue
        member = is_member(subset) and not is_member(other)
        kept = build(member, difference(children_of(subset), children_of(other)))
        if kept is not None:
            result[element] = kept
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for element, subset in left.items():
        other = right.get(element)
        if other is None:
            continue
        member = is_member(subset) and is_member(other)
        kept = build(member, intersection(children_of(subset), children_of(other)))
        if kept is not None:
            result[element] = kept
    return result


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """Like `difference`, but a member of `right` also takes everything below it."""
    if not left or not right:
        return left
    result: FieldSet = {}
    for element, subset in left.items():
        other = right.get(element)
        if other is None:
            result[element] = subset
        elif not is_member(other):
            kept = build(is_member(subset), without(children_of(subset), other))
            if kept is not None:
                result[element] = kept
    return result


def insert(target: FieldSet, path: tuple[str, ...]) -> None:
    """Add one path to a set that is still being built."""
    last = len(path) - 1
    for index, element in enumerate(path):
        subset = target.get(element)
        if subset is None:
            target[element] = subset = {}
            if index == last:
                return
            target = subset
            continue
        if index == last:
            if subset:
                subset["."] = LEAF
            return
        if not subset:  # a member without children so far
            subset["."] = LEAF
        target = subset


def paths(subset: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All members in the order of messages: at each level the members first, then what is below them."""
    ordered = sorted((element for element in subset if element != "."), key=_rank)
    for element in ordered:
        if is_member(subset[element]):
            yield (*prefix, element)
    for element in ordered:
        if subset[element]:
            yield from paths(subset[element], (*prefix, element))


def _rank(element: str) -> tuple[int, Any]:
    """Sort key: fields, then items by key, then values, then indexes; numbers before texts."""
    kind, _, rest = element.partition(":")
    if kind == "f":
        return 0, rest
    value = json.loads(rest)
    if kind == "k":
        return 1, [(name, _value_rank(value[name])) for name in sorted(value)]
    return (2, _value_rank(value)) if kind == "v" else (3, value)


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    return (1, value) if isinstance(value, str) else (0, value or 0)


def leaves(subset: FieldSet) -> FieldSet:
    """The members without children."""
    result: FieldSet = {}
    for element, child in subset.items():
        if element == ".":
            continue
        kept = leaves(child) if child else LEAF
        if kept or not child:
            result[element] = kept
    return result


def ensure_fields_are_members(subset: FieldSet, node: Node | None) -> FieldSet:
    """Make every struct field that has members below it a member too, because removal works on members."""
    if not subset:
        return subset
    result: FieldSet = {}
    fields = node.map.fields if node is not None and node.map is not None else {}
    for element, child in subset.items():
        if element == "." or not child:
            result[element] = child
            continue
        below = ensure_fields_are_members(child, child_node(node, element))
        member = "." in child or (element.startswith("f:") and element[2:] in fields)
        if member and "." not in below:
            below = {".": LEAF, **below}
        result[element] = below
    return result


def child_node(node: Node | None, element: str) -> Node | None:
    if node is None:
        return None
    if element.startswith("f:"):
        return None if node.map is None else node.map.fields.get(element[2:], node.map.element)
    if element.startswith("k:"):
        return None if node.list is None else node.list.item
    return None


def text(path: tuple[str, ...]) -> str:
    """A path as messages print it: `.spec.items[name="a"].value`."""
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    if kind == "k":
        keys = sorted(json.loads(rest).items())
        return "[" + ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in keys) + "]"
    return f"[{rest}]"
