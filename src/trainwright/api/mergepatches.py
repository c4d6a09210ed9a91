"""Merge patches that controllers send: of a status, and of an object's finalizers.

Each is bound to the version it was computed from, so that the API server answers 409 when the object has changed since
or is another one under the same name.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.metadata import ObjectMeta
from trainwright.schema.jsonobject import Json


def changed_members(before: Json, after: Json) -> Json:
    """The merge patch (RFC 7386) from one object to the other; empty when they are equal."""
    changes: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if nested := changed_members(old, value):
                changes[name] = nested
        elif old != value:
            changes[name] = value
    return changes


def status_patch(metadata: ObjectMeta, changes: Json) -> Json:
    """The merge patch that changes the status of exactly this version of the object."""
    return {"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}, "status": changes}


def finalizers_patch(metadata: ObjectMeta, finalizers: Iterable[str]) -> Json:
    """The merge patch that sets the finalizers of exactly this version of the object."""
    return {"metadata": {"resourceVersion": metadata.resource_version, "finalizers": list(finalizers) or None}}
