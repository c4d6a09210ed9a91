"""Pruning: remove the fields that a schema does not declare, and list their paths as strict decoding names them.

In: a value and its schema. Out: the value without unknown fields (changed in place), and their sorted paths, such as
`spec.items[0].what`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.schema.structural import StructuralSchema

_TYPE_META = ("apiVersion", "kind", "metadata")
_OBJECT_META = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_OBJECT_META_LISTS = {
    "ownerReferences": frozenset({"apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"}),
    "managedFields": frozenset({"apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"}),
}


def prune(schema: StructuralSchema, value: Any, *, root: bool) -> list[str]:
    """Remove unknown fields in place and return their paths, sorted."""
    unknown: list[str] = []
    _prune(schema, value, "", unknown, root or schema.embedded_resource)
    if len(unknown) > 1:
        unknown.sort()
    return unknown


def _prune(schema: StructuralSchema | None, value: Any, path: str, unknown: list[str], resource: bool) -> None:
    if type(value) is dict:
        _prune_object(schema, value, path, unknown, resource)
    elif type(value) is list:
        keeps = schema is not None and schema.preserve_unknown_fields
        items = schema.items if schema is not None else None
        if items is None and keeps:
            return
        for index, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                _prune(items, item, f"{path}[{index}]", unknown, items is not None and items.embedded_resource)


def _prune_object(schema: StructuralSchema | None, value: Json, path: str, unknown: list[str], resource: bool) -> None:
    removed: list[str] = []
    declared = schema._properties if schema is not None else {}
    for name, member in value.items():
        if resource and name in _TYPE_META:
            if name == "metadata" and type(member) is dict:
                prune_object_meta(member, f"{path}.metadata" if path else "metadata", unknown)
            continue
        if name not in declared and not _takes_undeclared(schema):
            removed.append(name)
        elif type(member) is dict or type(member) is list:  # a scalar needs no look at its schema
            child = schema.member(name) if schema is not None else None
            if child is not None:
                _prune(child, member, f"{path}.{name}" if path else name, unknown, child.embedded_resource)
    for name in removed:
        del value[name]
        unknown.append(f"{path}.{name}" if path else name)


def _takes_undeclared(schema: StructuralSchema | None) -> bool:
    return schema is not None and (schema.preserve_unknown_fields or schema.is_map or schema.additional is not None)


def prune_object_meta(value: Json, path: str, unknown: list[str]) -> None:
    """Remove the fields that ObjectMeta does not have, and the null creationTimestamp that Go's typed clients send."""
    if "creationTimestamp" in value and value["creationTimestamp"] is None:
        del value["creationTimestamp"]
    for name in [name for name in value if name not in _OBJECT_META]:
        del value[name]
        unknown.append(f"{path}.{name}")
    for name, known in _OBJECT_META_LISTS.items():
        items = value.get(name)
        if type(items) is not list:
            continue
        for index, item in enumerate(items):
            if type(item) is dict:
                for key in [key for key in item if key not in known]:
                    del item[key]
                    unknown.append(f"{path}.{name}[{index}].{key}")
