"""How a value merges, derived from an OpenAPI schema.

In: a schema (a CRD's, or a built-in definition with its references). Out: a tree of `Node`s. A node may allow several
shapes at once (an int-or-string, a value without a schema); the value then tells which of them applies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.schema.jsonobject import Json

Resolve = Callable[[str], Json]


class MapNode:
    """Declared fields by name, and `element` for all other keys: None where those are not allowed."""

    __slots__ = ("atomic", "element", "fields")

    def __init__(self, atomic: bool) -> None:
        self.atomic = atomic
        self.fields: dict[str, Node] = {}
        self.element: Node | None = None

    def child(self, name: str) -> Node:
        """The node of a member; that of a member nobody declared, which only a live object can hold, is a scalar."""
        return self.fields.get(name, self.element) or SCALAR


class ListNode:
    """A list of objects told apart by `keys`, a set (no keys), or an `atomic` list, which is one value."""

    __slots__ = ("atomic", "defaults", "item", "keys")

    def __init__(self, atomic: bool, keys: tuple[str, ...] = ()) -> None:
        self.atomic = atomic
        self.keys = keys
        self.item: Node = UNTYPED
        self.defaults: dict[str, Any] = {}


class Node:
    """The shapes a value may have. `scalar` also stands for any value that is not a list or map."""

    __slots__ = ("list", "map", "scalar")

    def __init__(self, *, scalar: bool = False, map: MapNode | None = None, list: ListNode | None = None) -> None:
        self.scalar = scalar
        self.map = map
        self.list = list

    def shape(self, value: Any) -> MapNode | ListNode | None:
        """The part that applies to this value; None for a scalar."""
        if isinstance(value, dict):
            return self.map
        if isinstance(value, list):
            return self.list
        if value is None:  # fits any shape; a map is tried first
            return self.map or (None if self.scalar else self.list)
        return None


UNTYPED = Node(scalar=True)
"""No schema: maps merge key by key, lists are one value."""
UNTYPED.map = MapNode(atomic=False)
UNTYPED.map.element = UNTYPED
UNTYPED.list = ListNode(atomic=True)

SCALAR = Node(scalar=True)

OPAQUE = Node(scalar=True, map=MapNode(atomic=True), list=ListNode(atomic=True))
"""An object of another kind, carried as one value."""


class Builder:
    """Builds one node for each named definition, so that recursive schemas end."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve
        self._named: dict[str, Node] = {}

    def build(self, schema: Json | None, preserve: bool = False) -> Node:
        if not schema:
            return UNTYPED
        reference = _reference_in(schema)
        if reference is not None:
            return self._named_node(reference, schema, preserve)
        node = Node()
        self._fill(node, schema, preserve)
        return node

    def _named_node(self, name: str, schema: Json, preserve: bool) -> Node:
        # A reference may carry its own map type, as `x-kubernetes-map-type: atomic` beside a $ref does.
        override = schema.get("x-kubernetes-map-type")
        key = f"{name}|{override or ''}"
        if name.endswith("RawExtension"):
            return OPAQUE
        node = self._named.get(key)
        if node is None:
            node = self._named[key] = Node()
            assert self._resolve is not None
            target = self._resolve(name)
            if override:
                target = {**target, "x-kubernetes-map-type": override}
            self._fill(node, target, preserve)
        return node

    def _fill(self, node: Node, schema: Json, preserve: bool) -> None:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type", "")
        if schema.get("format") == "int-or-string":
            node.scalar = True
        elif schema.get("x-kubernetes-int-or-string"):  # a CRD's takes any value here; its validation is stricter
            node.scalar, node.map, node.list = UNTYPED.scalar, UNTYPED.map, UNTYPED.list
        elif kind == "object":
            node.map = self._map(schema, preserve)
        elif kind == "array":
            node.list = self._list(schema, preserve)
        elif kind:
            node.scalar = True
        else:
            node.scalar = True
            node.map = self._map(schema, preserve)
            node.list = self._list(schema, preserve)

    def _map(self, schema: Json, preserve: bool) -> MapNode:
        node = MapNode(atomic=schema.get("x-kubernetes-map-type") == "atomic")
        properties = schema.get("properties") or {}
        for name, member in properties.items():
            node.fields[name] = self.build(member, preserve)
        if schema.get("x-kubernetes-embedded-resource"):
            node.fields.setdefault("apiVersion", SCALAR)
            node.fields.setdefault("kind", SCALAR)
            node.fields["metadata"] = METADATA
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            node.element = self.build(more, preserve)
        elif more or (more is None and (preserve or not properties)):
            node.element = UNTYPED
        return node

    def _list(self, schema: Json, preserve: bool) -> ListNode:
        list_type = schema.get("x-kubernetes-list-type")
        keys: tuple[str, ...] = ()
        if list_type == "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        elif list_type is None and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            merge_key = schema.get("x-kubernetes-patch-merge-key")
            keys = (merge_key,) if merge_key else ()
            list_type = "map" if keys else "set"
        node = ListNode(atomic=list_type not in ("map", "set"), keys=keys)
        items = schema.get("items")
        node.item = self.build(items, preserve) if isinstance(items, dict) else UNTYPED
        if keys and isinstance(items, dict):
            for name, member in (self._resolved(items).get("properties") or {}).items():
                if name in keys and "default" in member:
                    node.defaults[name] = member["default"]
        return node

    def _resolved(self, schema: Json) -> Json:
        reference = _reference_in(schema)
        return schema if reference is None or self._resolve is None else self._resolve(reference)


def _reference_in(schema: Json) -> str | None:
    """The definition that a schema refers to, directly or by an `allOf` of one part."""
    reference = schema.get("$ref")
    parts = schema.get("allOf")
    if reference is None and isinstance(parts, list) and len(parts) == 1:
        reference = parts[0].get("$ref")
    return None if reference is None else reference.rpartition("/")[2]


def _metadata() -> Node:
    text, flag, number = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
    texts = {"type": "object", "additionalProperties": text}
    owner = {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            **dict.fromkeys(("apiVersion", "kind", "name", "uid"), text),
            **dict.fromkeys(("controller", "blockOwnerDeletion"), flag),
        },
    }
    owners = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"], "items": owner}
    names = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion")
    properties: Json = {
        **dict.fromkeys((*names, "creationTimestamp", "deletionTimestamp"), text),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), number),
        **dict.fromkeys(("labels", "annotations"), texts),
        "ownerReferences": owners,
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic"},
    }
    return Builder().build({"type": "object", "properties": properties})


METADATA = _metadata()


def object_node(schema: Json | None, resolve: Resolve | None = None) -> Node:
    """The node of a whole object: that of its schema, but its metadata is always Kubernetes' own."""
    built = Builder(resolve).build(schema or {})
    source = built.map if built.map is not None and not built.map.atomic else MapNode(atomic=False)
    top = MapNode(atomic=False)
    top.fields = {**source.fields, "apiVersion": SCALAR, "kind": SCALAR, "metadata": METADATA}
    top.element = source.element
    return Node(map=top)
