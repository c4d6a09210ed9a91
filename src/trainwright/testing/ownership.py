"""The part of an object that a field manager owns, by `metadata.managedFields`.

In: a stored object, a manager and an operation. Out: the object with only that manager's fields. A leaf of the field
set is taken whole (scalars, atomic lists and maps); elements of keyed lists are found by their keys and keep their
order.
"""

from __future__ import annotations

import json
from typing import Any

from trainwright.schema.jsonobject import Json


def owned_fields(item: Json, manager: str, operation: str | None = None) -> Json:
    """The fields of `manager`, optionally of one operation (`Apply` or `Update`), without subresources."""
    fields: Json = {}
    for entry in item["metadata"].get("managedFields", []):
        matches = entry["manager"] == manager and not entry.get("subresource")
        if matches and operation in (None, entry["operation"]):
            fields = _union(fields, entry["fieldsV1"])
    cut = _cut(item, fields)
    assert isinstance(cut, dict)
    identity = {key: item[key] for key in ("apiVersion", "kind") if key in item}
    named = {key: item["metadata"][key] for key in ("name", "namespace") if key in item["metadata"]}
    return {**identity, **cut, "metadata": {**named, **cut.get("metadata", {})}}


def _cut(value: Any, fields: Json) -> Any:
    below = {key: inner for key, inner in fields.items() if key != "."}
    if not below:
        return value
    if isinstance(value, dict):
        return {
            key.removeprefix("f:"): _cut(value[key.removeprefix("f:")], inner)
            for key, inner in below.items()
            if key.startswith("f:") and key.removeprefix("f:") in value
        }
    if isinstance(value, list):
        kept = []
        for element in value:
            for key, inner in below.items():
                if _names(key, element):
                    kept.append(_cut(element, inner))
        return kept
    return value


def _names(key: str, element: Any) -> bool:
    """Whether this is the list element that `k:{"name":"x"}` or `v:"x"` names."""
    wanted = json.loads(key[2:])
    if key.startswith("v:"):
        return bool(element == wanted)
    return isinstance(element, dict) and all(element.get(name) == value for name, value in wanted.items())


def _union(left: Json, right: Json) -> Json:
    """The union of both field sets. A leaf includes everything below it in the other set."""
    out = dict(left)
    for key, inner in right.items():
        out[key] = _union(out[key], inner) if key in out and out[key] and inner else ({} if key in out else inner)
    return out
