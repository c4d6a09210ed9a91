"""The two forms of an event: core/v1, which is stored, and events.k8s.io/v1."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json

_PAIRS = (
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_CORE_NAMES = {new: core for core, new in _PAIRS}
_NEW_NAMES = dict(_PAIRS)
_ALWAYS: Json = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def to_core(obj: Json) -> Json:
    """events.k8s.io/v1 → core/v1."""
    converted = {_CORE_NAMES.get(name, name): value for name, value in obj.items()}
    for name, zero in _ALWAYS.items():
        converted.setdefault(name, zero)
    converted["apiVersion"] = "v1"
    return converted


def from_core(obj: Json) -> Json:
    """core/v1 → events.k8s.io/v1."""
    converted = {_NEW_NAMES.get(name, name): value for name, value in obj.items()}
    for name in ("reportingController", "reportingInstance"):
        if converted.get(name) == "":
            del converted[name]
    return converted
