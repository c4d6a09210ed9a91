"""Events of both API groups: stored as core/v1, also served as events.k8s.io/v1."""

from __future__ import annotations

import dataclasses

from trainwright.embedded.apiserver.builtin.columns import EVENT_COLUMNS, EVENT_V1_COLUMNS
from trainwright.embedded.apiserver.builtin.eventforms import from_core, to_core
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind
from trainwright.embedded.apiserver.metadata import path_segment_faults
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import label_key_faults


def _faults(core: Json, reporting: str) -> list[FieldError]:
    """The rules of both groups: an event with an eventTime names its reporter and the action."""
    found: list[FieldError] = []
    involved = core.get("involvedObject") or {}
    namespace = core["metadata"].get("namespace", "")
    about = involved.get("namespace", "")
    if core.get("eventTime"):
        strange = not about and namespace not in ("default", "kube-system")
    else:
        strange = about != namespace and (about, namespace) != ("", "default")
    if strange:
        found.append(field.invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if not core.get("eventTime"):
        return found
    if not core.get("reportingComponent"):
        found.append(field.required(reporting))
    found += [
        field.invalid(reporting, core.get("reportingComponent", ""), text)
        for text in label_key_faults(core.get("reportingComponent", ""))
    ]
    for name in ("reportingInstance", "action", "reason"):
        value = core.get(name, "")
        if not value:
            found.append(field.required(name))
        elif len(value) > 128:
            found.append(field.invalid(name, "", "can have at most 128 characters"))
    if len(core.get("message", "")) > 1024:
        found.append(field.invalid("message", "", "can have at most 1024 characters"))
    return found


_FIXED = (
    *("involvedObject", "reason", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)


def _series(core: Json) -> list[FieldError]:
    series = core.get("series")
    if series is None:
        return []
    found: list[FieldError] = []
    if (series.get("count") or 0) < 2:
        found.append(field.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(field.required("series.lastObservedTime"))
    return found


class CoreEvents(BuiltinKind):
    plural, kind = "events", "Event"
    short_names = ("ev",)
    columns = EVENT_COLUMNS
    create_on_update = True

    def name_faults(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate(self, obj: Json) -> list[FieldError]:
        return _faults(obj, "reportingComponent")

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


class Events(BuiltinKind):
    group, plural, kind = "events.k8s.io", "events", "Event"
    short_names = ("ev",)
    columns = EVENT_V1_COLUMNS
    create_on_update = True
    error_group = ""  # stored and validated as core/v1

    def served(self) -> Type:
        return dataclasses.replace(
            super().served(), storage_resource="events", to_storage=to_core, from_storage=from_core
        )

    def validate(self, obj: Json) -> list[FieldError]:
        core = to_core(obj)
        found = _faults(core, "reportingController") + _series(core)
        if not core.get("eventTime"):
            found.append(field.required("eventTime"))
        if core.get("type") not in ("Normal", "Warning"):
            found.append(field.invalid("type", "", f"has invalid value: {core.get('type', '')}"))
        for name in ("firstTimestamp", "lastTimestamp", "count"):
            if core.get(name):
                found.append(field.invalid(name, "", "needs to be unset"))
        if core.get("source"):
            found.append(field.invalid("source", "", "needs to be unset"))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        """Only the series may change. An event that core/v1 stored with faults cannot be updated through this group."""
        core, before = to_core(obj), to_core(old)
        found = _faults(core, "reportingController")
        if core.get("series") != before.get("series"):
            found += _series(core)
        for name in _FIXED:
            if (core.get(name) or None) != (before.get(name) or None):
                shown = "reportingController" if name == "reportingComponent" else name
                found.append(field.invalid(shown, core.get(name), "field is immutable"))
        return found

    def fields(self, obj: Json) -> dict[str, str]:
        regarding = obj.get("regarding") or {}
        found = {
            f"regarding.{name}": str(regarding.get(name, ""))
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        }
        controller = obj.get("reportingController", "")
        found.update({"reason": obj.get("reason", ""), "reportingController": controller, "type": obj.get("type", "")})
        return found
