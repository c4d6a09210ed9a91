"""Types that CRDs declare: from a stored CustomResourceDefinition to served types, and their end.

In: events of CRDs. Out: the registry's custom types. Conversion between versions is `None`: only apiVersion changes.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainwright.embedded.apiserver.custom import jsonpath
from trainwright.embedded.apiserver.custom.embeddedobjects import EmbeddedObjects, check_metadata
from trainwright.embedded.apiserver.fieldmanager.nodes import object_node
from trainwright.embedded.apiserver.http.age import age_of
from trainwright.embedded.apiserver.http.tables import NAME, age
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.types import Column, Strategy, Type
from trainwright.schema import errors as field
from trainwright.schema.custom_resource import check_create, check_status_update, check_update
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import plain_text, type_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.structural import StructuralSchema

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
ENDING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class CustomStrategy(Strategy):
    """The rules a CRD version declares."""

    unconditional_update = False
    tracks_generation = True

    def __init__(
        self, kind: str, api_version: str, schema: Json, *, status: bool, selectable: list[str], scale: Json
    ) -> None:
        self.scale = scale
        self.kind = kind
        self.api_version = api_version
        self.schema = StructuralSchema.compile(schema)
        self.embedded = EmbeddedObjects(self.schema)
        self.has_status = status
        self.selectable = selectable
        self.ignored_on_main = {"f:status": {}} if status else {}
        # Of the metadata only managedFields may change through the status subresource.
        self.ignored_on_status = {"f:metadata": {}, "f:spec": {}}

    def decode(self, obj: Json) -> tuple[Json, list[str]]:
        unknown = check_metadata(obj["metadata"]) + self.embedded.decode(obj)
        unknown += self.schema.prune(obj)
        return obj, sorted(unknown, key=_in_metadata) if len(unknown) > 1 else unknown

    def default(self, obj: Json) -> None:
        self.schema.default(obj)

    def default_applied(self, obj: Json) -> None:
        """A null that was applied and has no default stays, and is refused by validation."""
        nulls = applied_nulls(self.schema, obj)
        self.schema.default(obj)
        for parent, name in nulls:
            parent.setdefault(name, None)

    def prepare_create(self, obj: Json) -> None:
        if self.has_status:
            obj.pop("status", None)

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        managed = obj["metadata"].get("managedFields")
        status = obj.get("status")
        kept = copy.deepcopy(old)
        sent = obj["metadata"]
        obj.clear()
        obj.update(kept)
        obj["metadata"] = kept["metadata"]
        if sent.get("resourceVersion"):
            obj["metadata"]["resourceVersion"] = sent["resourceVersion"]
        if managed is None:
            obj["metadata"].pop("managedFields", None)
        else:
            obj["metadata"]["managedFields"] = managed
        if status is None:
            obj.pop("status", None)
        else:
            obj["status"] = status

    def generation_content(self, obj: Json) -> Any:
        skipped = ("metadata", "status") if self.has_status else ("metadata",)
        return {name: value for name, value in obj.items() if name not in skipped}

    # ------------------------------------------------------------------------------------------------ rules

    def _type_faults(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("kind") != self.kind:
            found.append(field.invalid("kind", obj.get("kind"), f"must be {self.kind}"))
        if obj.get("apiVersion") != self.api_version:
            found.append(field.invalid("apiVersion", obj.get("apiVersion"), f"must be {self.api_version}"))
        return found

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        return check_create(self.schema, obj, self._faults(obj) + found)

    def check_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        spared: list[FieldError] = []
        faults = check_update(self.schema, obj, old, self._faults(obj) + found, spared)
        warn(map(str, spared))
        return faults

    def check_status_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        spared: list[FieldError] = []
        faults = check_status_update(self.schema, obj, old, self._faults(obj) + found, spared)
        warn(map(str, spared))
        return faults

    def _faults(self, obj: Json) -> list[FieldError]:
        return self._scale_faults(obj) + self._type_faults(obj) + self.embedded.faults(obj)

    def _scale_faults(self, obj: Json) -> list[FieldError]:
        """What the scale subresource shows must be countable replicas and a selector."""
        found: list[FieldError] = []
        for name, kind in (("specReplicasPath", int), ("statusReplicasPath", int), ("labelSelectorPath", str)):
            path = self.scale.get(name, "")
            value, fault = _find(obj, path.strip(".").split("."), kind) if path else (None, "")
            if fault:
                found.append(field.invalid(path, kind(), f"{path} accessor error: {fault}"))
            elif isinstance(value, int) and value < 0:
                found.append(field.invalid(path, value, "should be a non-negative integer"))
        return found

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        before = set((old or {"metadata": {}})["metadata"].get("finalizers") or ())
        added = sorted(set(obj["metadata"].get("finalizers") or ()) - before)
        return [
            f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental'
            " conflicts with other finalizer writers"
            for name in added
            if "/" not in name and name not in ("orphan", "foregroundDeletion", "kubernetes")
        ]

    def fields(self, obj: Json) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in self.selectable:
            values = jsonpath.find(path, obj)
            value = values[0] if values else ""
            if isinstance(value, bool):
                value = "true" if value else "false"
            found[path.lstrip(".")] = str(value)
        return found

    def field_names(self) -> frozenset[str]:
        return frozenset(path.lstrip(".") for path in self.selectable)


def _in_metadata(path: str) -> tuple[bool, str]:
    """What the metadata does not know is named before all else."""
    return not path.startswith("metadata."), path


def _find(obj: Json, path: list[str], kind: type) -> tuple[Any, str]:
    """The value at a path, or why there can be none."""
    value: Any = obj
    for part in path:
        if not isinstance(value, dict):
            return None, f"{plain_text(value)} is of the type {type_text(value)}, expected map[string]interface{{}}"
        value = value.get(part)
        if value is None:
            return None, ""
    if type(value) is not kind:
        wanted = "string" if kind is str else "int64"
        return None, f"{plain_text(value)} is of the type {type_text(value)}, expected {wanted}"
    return value, ""


def applied_nulls(schema: StructuralSchema, value: Any, *, root: bool = True) -> list[tuple[Json, str]]:
    """Where a null stands that the schema neither allows nor replaces."""
    found: list[tuple[Json, str]] = []
    if isinstance(value, dict):
        for name, entry in value.items():
            child = schema.member(name)
            if child is None or (root and name == "metadata"):
                continue
            if entry is None and not child.nullable and not child.has_default:
                found.append((value, name))
            elif isinstance(entry, dict | list):
                found += applied_nulls(child, entry, root=False)
    elif isinstance(value, list) and schema.items is not None:
        for entry in value:
            found += applied_nulls(schema.items, entry, root=False)
    return found


# ---------------------------------------------------------------------------------------------------------- types


def types_of(crd: Json) -> list[Type]:
    """The served versions of a CRD, storage version included only if served."""
    return [_type(crd, version) for version in crd["spec"]["versions"] if version.get("served")]


def _type(crd: Json, version: Json) -> Type:
    spec, names = crd["spec"], crd["spec"]["names"]
    group = spec["group"]
    api_version = f"{group}/{version['name']}"
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    declared = version.get("subresources") or {}
    subresources: dict[str, Any] = {}
    verbs = ["get", "patch", "update"]
    if declared.get("status") is not None:
        subresources["status"] = {"verbs": verbs}
    if declared.get("scale") is not None:
        paths = declared["scale"]
        subresources["scale"] = {
            "verbs": verbs,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "paths": paths,
        }
    selectable = [entry["jsonPath"] for entry in version.get("selectableFields") or ()]
    strategy = CustomStrategy(
        names["kind"],
        api_version,
        schema,
        status="status" in subresources,
        selectable=selectable,
        scale=declared.get("scale") or {},
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
