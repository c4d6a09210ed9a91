"""How a value merges, derived from an OpenAPI schema.

In: a schema (a CRD's, or a built-in definition with its references). Out: a tree of `Node`s. A node may allow several
shapes at once (an int-or-string, a free value): which one holds is seen from the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Resolve = Callable[[str], dict[str, Any]]


class MapNode:
    """Fields by name; `element` for keys that are no fields, None where unknown keys are not allowed."""

    __slots__ = ("atomic", "element", "fields")

    def __init__(self, atomic: bool) -> None:
        self.atomic = atomic
        self.fields: dict[str, Node] = {}
        self.element: Node | None = None


class ListNode:
    """`keys` for a list of objects by key; none for a set; `atomic` lists are one value."""

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
    """Builds nodes once for each named definition, so that recursive schemas end."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve
        self._named: dict[str, Node] = {}

    def build(self, schema: dict[str, Any] | None, preserve: bool = False) -> Node:
        if not schema:
            return UNTYPED
        reference = schema.get("$ref")
        if reference is None and isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            reference = schema["allOf"][0].get("$ref")
        if reference is not None:
            return self._reference(reference, schema, preserve)
        node = Node()
        self._fill(node, schema, preserve)
        return node

    def _reference(self, reference: str, schema: dict[str, Any], preserve: bool) -> Node:
        name = reference.rpartition("/")[2]
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

    def _fill(self, node: Node, schema: dict[str, Any], preserve: bool) -> None:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type", "")
        if schema.get("format") == "int-or-string":
            node.scalar = True
        elif schema.get("x-kubernetes-int-or-string"):  # of a CRD: any value, which validation then judges
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

    def _map(self, schema: dict[str, Any], preserve: bool) -> MapNode:
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

    def _list(self, schema: dict[str, Any], preserve: bool) -> ListNode:
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
            for name, member in (self._plain(items).get("properties") or {}).items():
                if name in keys and "default" in member:
                    node.defaults[name] = member["default"]
        return node

    def _plain(self, schema: dict[str, Any]) -> dict[str, Any]:
        reference = schema.get("$ref")
        if reference is None and isinstance(schema.get("allOf"), list):
            reference = schema["allOf"][0].get("$ref")
        if reference is None or self._resolve is None:
            return schema
        return self._resolve(reference.rpartition("/")[2])


def _metadata() -> Node:
    text = {"type": "string"}
    reference = {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {}}
    for name in ("apiVersion", "kind", "name", "uid"):
        reference["properties"][name] = text  # type: ignore[index]
    for name in ("controller", "blockOwnerDeletion"):
        reference["properties"][name] = {"type": "boolean"}  # type: ignore[index]
    texts = {"type": "object", "additionalProperties": text}
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    names = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp")
    for name in (*names, "deletionTimestamp"):
        schema["properties"][name] = text
    for name in ("generation", "deletionGracePeriodSeconds"):
        schema["properties"][name] = {"type": "integer"}
    schema["properties"]["labels"] = texts
    schema["properties"]["annotations"] = texts
    schema["properties"]["ownerReferences"] = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
        "items": reference,
    }
    schema["properties"]["finalizers"] = {"type": "array", "x-kubernetes-list-type": "set", "items": text}
    schema["properties"]["managedFields"] = {"type": "array", "x-kubernetes-list-type": "atomic"}
    return Builder().build(schema)


METADATA = _metadata()


def object_node(schema: dict[str, Any] | None, resolve: Resolve | None = None) -> Node:
    """The node of a whole object: its schema, with Kubernetes' metadata in place of whatever the schema says of it."""
    built = Builder(resolve).build(schema or {})
    source = built.map if built.map is not None and not built.map.atomic else MapNode(atomic=False)
    top = MapNode(atomic=False)
    top.fields = {**source.fields, "apiVersion": SCALAR, "kind": SCALAR, "metadata": METADATA}
    top.element = source.element
    return Node(map=top)
