"""A value seen through its node: which fields it has, how two values differ, and a value without some of its fields.

Three walks of structured-merge-diff: `fields_of` (ToFieldSet), `compare` and `remove`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from trainwright.embedded.apiserver.fieldmanager.fieldset import LEAF, FieldSet, build, children_of, is_member
from trainwright.embedded.apiserver.fieldmanager.nodes import ListNode, MapNode, Node
from trainwright.embedded.apiserver.storage.equality import same


class TypedError(ValueError):
    """A value that does not fit its node; the text is what follows `failed to create typed patch object`."""


class Comparison(NamedTuple):
    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def item_element(node: ListNode, item: Any) -> str:
    """The path element of a list item: by its keys, or by its value in a set."""
    if not node.keys:
        if item is None:
            raise TypedError("associative list without keys has an element that's an explicit null")
        if isinstance(item, dict | list):
            what = "map" if isinstance(item, dict) else "list"
            raise TypedError(f"associative list without keys has an element that's a {what} type")
        return "v:" + json.dumps(item, ensure_ascii=False, separators=(",", ":"))
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


def key_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "v":
        return f"[={rest}]"
    keys = json.loads(rest)
    return "[" + ",".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in sorted(keys.items())) + "]"


def indexed(node: ListNode, items: list[Any] | None) -> dict[str, list[Any]]:
    """Items by path element, in order; a malformed live item stands for nobody."""
    found: dict[str, list[Any]] = {}
    for item in items or ():
        try:
            found.setdefault(item_element(node, item), []).append(item)
        except TypedError:
            continue
    return found


# ---------------------------------------------------------------------------------------------------------- validate


def check(node: Node, value: Any, path: str = "") -> list[str]:
    """Why an applied value does not fit: fields not in the schema, items without keys, duplicates."""
    faults: list[str] = []
    shape = node.shape(value)
    if isinstance(shape, MapNode) and isinstance(value, dict):
        for name, entry in value.items():
            child = shape.fields.get(name, shape.element)
            if child is None:
                faults.append(f"{path}.{name}: field not declared in schema")
            else:
                faults += check(child, entry, f"{path}.{name}")
    elif isinstance(shape, ListNode) and isinstance(value, list):
        seen: set[str] = set()
        for index, item in enumerate(value):
            at = f"{path}[{index}]"
            if not shape.atomic:
                try:
                    element = item_element(shape, item)
                except TypedError as error:
                    faults.append(f"{path}: element {index}: {error}")
                    continue
                at = path + key_text(element)
                if element in seen:
                    faults.append(f"{path}: duplicate entries for key {key_text(element)}")
                seen.add(element)
            faults += check(shape.item, item, at)
    elif isinstance(value, dict) and node.map is None:
        wanted = "list" if node.list is not None else "scalar"
        faults.append(f"{path}: expected {wanted}, got {_plain(value)}")
    elif isinstance(value, list) and node.list is None:
        wanted = "map" if node.map is not None else "scalar"
        faults.append(f"{path}: expected {wanted}, got {_plain(value)}")
    elif not node.scalar and value is not None and shape is None and not isinstance(value, dict | list):
        wanted = "map" if node.map is not None else "list"
        faults.append(f"{path}: expected {wanted}, got {_plain(value)}")
    return faults


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"&{{{go_text(value)}}}"


def go_text(value: Any) -> str:
    """`%v` of a decoded value."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_text(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def go_type(value: Any) -> str:
    """`%T` of a decoded value."""
    kinds = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}
    return kinds.get(type(value), "float64")


# ---------------------------------------------------------------------------------------------------------- fields


def fields_of(node: Node, value: Any) -> FieldSet:
    """The fields a value sets: leaves, list items, and keys of free maps."""
    subset = _fields(node, value)
    return subset if isinstance(subset, dict) else {}


def _fields(node: Node, value: Any) -> FieldSet | None:
    """The set below one element; LEAF if the value counts as one, None if it sets nothing of its own."""
    shape = node.shape(value)
    if isinstance(shape, MapNode):
        if shape.atomic:
            return LEAF
        result: FieldSet = {}
        for name, entry in (value or {}).items():
            child = shape.fields.get(name)
            subset = _fields(child or shape.element or _ANY, entry)
            # `subset is LEAF` must not be taken for an empty map: emptiness is asked of the value.
            inner = subset if subset else {}
            member = (
                child is None
                or entry is None
                or (isinstance(entry, dict) and not entry)
                or (subset is not None and not subset)
            )
            kept = build(member, inner)
            if kept is not None:
                result[f"f:{name}"] = kept
        return result or None
    if isinstance(shape, ListNode):
        if shape.atomic:
            return LEAF
        found: FieldSet = {}
        for element, items in indexed(shape, value).items():
            subset = _fields(shape.item, items[0]) if len(items) == 1 else LEAF
            found[element] = build(True, subset or {}) or LEAF
        return found or None
    return LEAF


_ANY = Node(scalar=True)


# ---------------------------------------------------------------------------------------------------------- compare

_MISSING: Any = object()


def compare(node: Node, old: Any, new: Any) -> Comparison:
    """What was added, modified and removed between two values of one node."""
    result = Comparison({}, {}, {})
    if not same(old, new):
        _compare_into(node, old, new, result)
    return result


def _compare_into(node: Node, old: Any, new: Any, out: Comparison) -> None:
    """Differences of two present values, put into the three sets (whose root this value is)."""
    shape = node.shape(old if new is _MISSING else new)
    other = node.shape(new if old is _MISSING else old)
    if isinstance(shape, MapNode) and isinstance(other, MapNode):
        fields, element = shape.fields, shape.element
        left = old if isinstance(old, dict) else {}
        right = new if isinstance(new, dict) else {}
        for name, value in left.items():
            if name not in right:
                _compare_element(f"f:{name}", fields.get(name, element) or _ANY, value, _MISSING, out)
        for name, value in right.items():
            before = left.get(name, _MISSING)
            if before is _MISSING or not same(before, value):
                _compare_element(f"f:{name}", fields.get(name, element) or _ANY, before, value, out)
    elif isinstance(shape, ListNode) and isinstance(other, ListNode):
        before_items = indexed(shape, old if isinstance(old, list) else None)
        after_items = indexed(shape, new if isinstance(new, list) else None)
        for element_name in {**before_items, **after_items}:
            befores = before_items.get(element_name, [])
            afters = after_items.get(element_name, [])
            if len(befores) <= 1 and len(afters) <= 1:
                before = befores[0] if befores else _MISSING
                after = afters[0] if afters else _MISSING
                if before is _MISSING or after is _MISSING or not same(before, after):
                    _compare_element(element_name, shape.item, before, after, out)
            elif not befores:
                out.added[element_name] = LEAF
            elif not afters:
                out.removed[element_name] = LEAF
            elif not same(befores, afters):
                out.modified[element_name] = LEAF


def _compare_element(element: str, node: Node, old: Any, new: Any, out: Comparison) -> None:
    if _is_leaf(node, old, new):
        if old is _MISSING:
            out.added[element] = LEAF
        elif new is _MISSING:
            out.removed[element] = LEAF
        elif not same(old, new):
            out.modified[element] = LEAF
            _compare_kinds(element, node, old, new, out)
        return
    below = Comparison({}, {}, {})
    _compare_into(node, old, new, below)
    added = build(old is _MISSING, below.added)
    removed = build(new is _MISSING, below.removed)
    if added is not None:
        out.added[element] = added
    if below.modified:
        out.modified[element] = below.modified
    if removed is not None:
        out.removed[element] = removed


def _compare_kinds(element: str, node: Node, old: Any, new: Any, out: Comparison) -> None:
    """A value that became one of another kind: the members of the old map are gone, those of the new one are new."""
    left, right = node.shape(old), node.shape(new)
    if type(left) is type(right):
        return
    below = Comparison({}, {}, {})
    if isinstance(left, MapNode) and not left.atomic:
        _compare_into(node, old, _MISSING, below)
    if isinstance(right, MapNode) and not right.atomic:
        _compare_into(node, _MISSING, new, below)
    if below.added:
        out.added[element] = below.added
    if below.removed:
        out.removed[element] = below.removed


def _is_leaf(node: Node, old: Any, new: Any) -> bool:
    left = None if old is _MISSING else node.shape(old)
    right = None if new is _MISSING else node.shape(new)
    if old is not _MISSING and new is not _MISSING and type(left) is not type(right):
        return True
    shape = left if new is _MISSING else right
    if shape is None or shape.atomic:
        return True
    # Both empty: one value, so that empty and null stay apart.
    return not (old is not _MISSING and old) and not (new is not _MISSING and new)


# ---------------------------------------------------------------------------------------------------------- remove


def remove(node: Node, value: Any, gone: FieldSet) -> Any:
    """The value without the members of `gone`; a map or list that loses all it had becomes null."""
    if not gone:
        return value
    shape = node.shape(value)
    if isinstance(shape, MapNode) and isinstance(value, dict):
        if shape.atomic:
            return None
        result: dict[str, Any] = {}
        for name, entry in value.items():
            subset = gone.get(f"f:{name}")
            if subset is None:
                result[name] = entry
            elif not is_member(subset):
                result[name] = remove(shape.fields.get(name, shape.element) or _ANY, entry, subset)
        return result or None
    if isinstance(shape, ListNode) and isinstance(value, list):
        if shape.atomic:
            return None
        items: list[Any] = []
        for item in value:
            try:
                subset = gone.get(item_element(shape, item))
            except TypedError:
                subset = None
            if subset is None:
                items.append(item)
            elif not is_member(subset):
                items.append(remove(shape.item, item, children_of(subset)))
        return items or None
    return value
