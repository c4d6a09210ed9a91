"""The types that a CRD declares: from a stored CustomResourceDefinition to served types.

Conversion between versions is `None`: only apiVersion changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainwright.embedded.apiserver.custom import jsonpath
from trainwright.embedded.apiserver.custom.kind import CustomKind
from trainwright.embedded.apiserver.fieldmanager.nodes import object_node
from trainwright.embedded.apiserver.http.age import age_of
from trainwright.embedded.apiserver.http.tables import NAME, age
from trainwright.embedded.apiserver.types import Column, Type
from trainwright.schema.jsonobject import Json
from trainwright.schema.structural import StructuralSchema

ENDING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
SUBRESOURCE_VERBS = ["get", "patch", "update"]


def types_of(crd: Json) -> list[Type]:
    """The served versions of a CRD, storage version included only if served."""
    return [_type(crd, version) for version in crd["spec"]["versions"] if version.get("served")]


def _type(crd: Json, version: Json) -> Type:
    spec, names = crd["spec"], crd["spec"]["names"]
    group = spec["group"]
    api_version = f"{group}/{version['name']}"
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    subresources = _subresources(version.get("subresources") or {})
    strategy = CustomKind(
        names["kind"],
        api_version,
        schema,
        status="status" in subresources,
        selectable=[entry["jsonPath"] for entry in version.get("selectableFields") or ()],
        scale=subresources["scale"]["paths"] if "scale" in subresources else {},
    )
    return Type(
        group=group,
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        list_kind=names.get("listKind") or f"{names['kind']}List",
        namespaced=spec.get("scope") == "Namespaced",
        strategy=strategy,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        # An object may still be changed, so that its finalizers can go, but discovery tells only of its end.
        verbs=ENDING_VERBS if crd["metadata"].get("deletionTimestamp") else VERBS,
        subresources=subresources,
        custom=True,
        sibling_versions=tuple(f"{group}/{entry['name']}" for entry in spec["versions"]),
        deprecation=_deprecation(api_version, names["kind"], version),
        columns=_columns(version),
        make_node=lambda: object_node(schema),
        schema=lambda: schema,
        from_storage=_from_storage(crd, version, strategy.schema),
    )


def _subresources(declared: Json) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if declared.get("status") is not None:
        found["status"] = {"verbs": SUBRESOURCE_VERBS}
    if declared.get("scale") is not None:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "paths": declared["scale"]}
        found["scale"] = {"verbs": SUBRESOURCE_VERBS, **scale}
    return found


def _from_storage(crd: Json, version: Json, schema: StructuralSchema) -> Callable[[Json], Json] | None:
    """How stored objects are read: as the storage version has them, whichever version is asked for.

    With one schema for all that ever was, they are already.
    """
    versions = crd["spec"]["versions"]
    stored = next((entry for entry in versions if entry.get("storage")), version)
    if (crd["metadata"].get("generation") or 1) == 1 and stored.get("schema") == version.get("schema"):
        return None
    if stored is not version:
        schema = StructuralSchema.compile((stored.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"})

    def read(obj: Json) -> Json:
        schema.prune(obj)
        schema.default(obj)
        return obj

    return read


def _deprecation(api_version: str, kind: str, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    return str(version.get("deprecationWarning") or f"{api_version} {kind} is deprecated")


def _columns(version: Json) -> tuple[Column, ...]:
    declared = version.get("additionalPrinterColumns")
    if not declared:
        return (NAME, Column("Age", "date", age))
    return (NAME, *(_column(entry) for entry in declared))


def _column(entry: Json) -> Column:
    kind, path = entry["type"], entry["jsonPath"]

    def cell(obj: Json, now: float) -> Any:
        try:
            values = jsonpath.find(path, obj)
        except jsonpath.JsonPathError:
            return None
        return _cell(values[0], kind, now) if values else None

    return Column(
        entry["name"], kind, cell, entry.get("format", ""), entry.get("description", ""), entry.get("priority", 0)
    )


def _cell(value: Any, kind: str, now: float) -> Any:
    if kind == "date":
        return age_of(value, now) if isinstance(value, str) else "<unknown>"
    if kind == "integer":
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if kind == "number":
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return jsonpath.text(value)
