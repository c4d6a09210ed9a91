"""The difference of two specs, for messages about immutable fields."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json


def difference(old: Json, new: Json) -> str:
    """The names of the fields that differ, where kube-apiserver dumps both structs."""
    changed = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return "\n" + ", ".join(changed) + "\n"
