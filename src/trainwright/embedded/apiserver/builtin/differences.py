"""What differs between two specs, for messages about fields that may not change."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json


def difference(old: Json, new: Json) -> str:
    """Which fields differ, in place of Go's dump of both structs."""
    changed = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return "\n" + ", ".join(changed) + "\n"
