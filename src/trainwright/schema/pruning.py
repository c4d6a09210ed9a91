"""Pruning: fields that a schema does not declare are removed, and their paths reported as strict decoding names them.

In: a value and its schema. Out: the value without its unknown fields (in place) and the sorted paths, such as
`spec.items[0].what`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    """Remove unknown fields in place; the paths of what was removed, sorted."""
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


def _prune_object(
    schema: StructuralSchema | None, value: dict[str, Any], path: str, unknown: list[str], resource: bool
) -> None:
    removed: list[str] = []
    declared = schema._properties if schema is not None else {}
    children = schema._children if schema is not None else {}
    for name, member in value.items():
        if resource and name in _TYPE_META:
            if name == "metadata" and type(member) is dict:
                prune_object_meta(member, f"{path}.metadata" if path else "metadata", unknown)
            continue
        compound = type(member) is dict or type(member) is list
        if name in declared:
            # A scalar that is declared needs no further look, and its schema need not be compiled.
            if not compound:
                continue
            child = children.get(name) or schema.field(name) if schema is not None else None
        elif schema is None:
            removed.append(name)
            continue
        else:
            child = schema.additional
            if child is None:
                if not (schema.preserve_unknown_fields or schema.is_map):
                    removed.append(name)
                continue
        if compound and child is not None:
            _prune(child, member, f"{path}.{name}" if path else name, unknown, child.embedded_resource)
    for name in removed:
        del value[name]
        unknown.append(f"{path}.{name}" if path else name)


def prune_object_meta(value: dict[str, Any], path: str, unknown: list[str]) -> None:
    """Remove what ObjectMeta does not have; clients of typed libraries send an empty creationTimestamp."""
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
