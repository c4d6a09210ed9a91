"""The rules that one version of a CRD declares for its objects."""

from __future__ import annotations

import copy
from typing import Any

from trainwright.embedded.apiserver.custom import jsonpath
from trainwright.embedded.apiserver.custom.embeddedobjects import EmbeddedObjects, check_metadata
from trainwright.embedded.apiserver.http.warnings import warn
from trainwright.embedded.apiserver.types import Strategy
from trainwright.schema import errors as field
from trainwright.schema.custom_resource import check_create, check_status_update, check_update
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import plain_text, type_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.structural import StructuralSchema


class CustomKind(Strategy):
    """What the schema, the subresources and the selectable fields of a version say."""

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

    def _type_faults(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("kind") != self.kind:
            found.append(field.invalid("kind", obj.get("kind"), f"must be {self.kind}"))
        if obj.get("apiVersion") != self.api_version:
            found.append(field.invalid("apiVersion", obj.get("apiVersion"), f"must be {self.api_version}"))
        return found

    def check_create(self, obj: Json, found: list[FieldError]) -> list[FieldError]:
        return check_create(self.schema, obj, self._faults(obj) + found, self._scale_faults(obj))

    def check_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        ratcheted: list[FieldError] = []
        faults = check_update(self.schema, obj, old, self._faults(obj) + found, ratcheted, self._scale_faults(obj))
        warn(map(str, ratcheted))
        return faults

    def check_status_update(self, obj: Json, old: Json, found: list[FieldError]) -> list[FieldError]:
        ratcheted: list[FieldError] = []
        faults = check_status_update(
            self.schema, obj, old, self._faults(obj) + found, ratcheted, self._scale_faults(obj)
        )
        warn(map(str, ratcheted))
        return faults

    def _faults(self, obj: Json) -> list[FieldError]:
        return self._type_faults(obj) + self.embedded.faults(obj)

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
