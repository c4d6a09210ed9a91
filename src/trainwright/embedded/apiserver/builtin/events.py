"""Events, in both spellings: stored as core/v1, shown as events.k8s.io/v1 as well."""

from __future__ import annotations

from typing import Any

from ....schema import errors as field
from ....schema.errors import FieldError
from ..errors import Json
from ..metadata import path_segment_faults
from .strategy import BuiltinStrategy

_PAIRS = (
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_ALWAYS: dict[str, Any] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def to_core(obj: Json) -> Json:
    """events.k8s.io/v1 → core/v1, the stored form."""
    names = {new: old for old, new in _PAIRS}
    converted = {names.get(name, name): value for name, value in obj.items()}
    for name, zero in _ALWAYS.items():
        converted.setdefault(name, zero)
    converted["apiVersion"] = "v1"
    return converted


def from_core(obj: Json) -> Json:
    """core/v1 → events.k8s.io/v1."""
    names = dict(_PAIRS)
    converted = {names.get(name, name): value for name, value in obj.items()}
    for name in ("reportingController", "reportingInstance"):
        if converted.get(name) == "":
            del converted[name]
    return converted


class CoreEvents(BuiltinStrategy):
    create_on_update = True

    def name_faults(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate(self, obj: Json) -> list[FieldError]:
        involved = obj.get("involvedObject") or {}
        namespace = obj["metadata"].get("namespace", "")
        about = involved.get("namespace", "")
        if about != namespace and not (about == "" and namespace == "default"):
            return [field.invalid("involvedObject.namespace", about, "does not match event.namespace")]
        return []

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return self.validate(obj)

    def fields(self, obj: Json) -> dict[str, str]:
        involved = obj.get("involvedObject") or {}
        source = (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
        found = {
            f"involvedObject.{name}": str(involved.get(name, ""))
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        }
        found.update(
            {
                "reason": obj.get("reason", ""),
                "reportingComponent": obj.get("reportingComponent", ""),
                "source": source,
                "type": obj.get("type", ""),
            }
        )
        return found

    def field_names(self) -> frozenset[str]:
        return frozenset(self.fields({}))


class Events(BuiltinStrategy):
    create_on_update = True

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if not obj.get("eventTime"):
            found.append(field.required("eventTime"))
        for name, limit in (("reportingController", 0), ("reportingInstance", 128), ("action", 128), ("reason", 128)):
            core = {"reportingController": "reportingController"}.get(name, name)
            if not obj.get(name):
                found.append(field.required(core))
            elif limit and len(obj[name]) > limit:
                found.append(field.too_long(core, limit))
        if obj.get("type") not in ("Normal", "Warning"):
            found.append(field.invalid("type", obj.get("type", ""), "has invalid value: " + str(obj.get("type", ""))))
        if len(obj.get("note", "")) > 1024:
            found.append(field.too_long("message", 1024))
        for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
            if obj.get(name):
                found.append(
                    field.invalid(
                        name.replace("deprecatedF", "f").replace("deprecatedL", "l"), obj[name], "needs to be unset"
                    )
                )
        if obj.get("deprecatedCount"):
            found.append(field.invalid("count", obj["deprecatedCount"], "needs to be unset"))
        source = obj.get("deprecatedSource") or {}
        if source:
            found.append(field.invalid("source", source, "needs to be unset"))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        return []

    def fields(self, obj: Json) -> dict[str, str]:
        regarding = obj.get("regarding") or {}
        found = {
            f"regarding.{name}": str(regarding.get(name, ""))
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        }
        controller = obj.get("reportingController", "")
        found.update({"reason": obj.get("reason", ""), "reportingController": controller, "type": obj.get("type", "")})
        return found

    def field_names(self) -> frozenset[str]:
        return frozenset(self.fields({}))
