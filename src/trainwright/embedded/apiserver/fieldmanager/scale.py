"""Ownership of `replicas` after a write through the scale subresource.

In: the owners of the object, and the replicas before and after. Out: the new owners. A Scale is a view: it carries only
the owners of the replicas, under its own version, and without times; what comes back is put in place of theirs. Two
oddities of the real server follow from that, which clients see: an updater that owned the replicas among other fields
has a second entry for them afterwards, without a time, even if nothing changed; and zero replicas count as none, which
nobody owns.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.entries import (
    Managed,
    identity,
    in_order,
    parts,
    write,
)
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.updater import Owned
from trainwright.schema.jsonobject import Json

VERSION = "autoscaling/v1"


def scaled(managed: Managed, path: FieldSet, before: int, after: int, manager: str, version: str) -> list[Json]:
    """The managedFields entries of the scaled object. `path` holds nothing but the replicas."""
    owners = {key: owned for key, owned in managed.fields.items() if fieldset.intersection(owned.fields, path)}
    seen = {_as_scale(key): owned.applied for key, owned in owners.items()}
    if seen and before != after:  # an object whose replicas nobody owns looks untracked, and stays so
        seen = {identity(manager, "Update", VERSION, "scale"): False} if after else {}
    kept = Managed(times=managed.times)
    for key, owned in managed.fields.items():
        if key not in owners or key in seen:  # an applier's identity has no version: its entry is left alone
            kept.fields[key] = owned
            continue
        rest = fieldset.difference(owned.fields, path)
        if rest:
            kept.fields[key] = owned._replace(fields=rest)
    taken = Managed()
    for key, applied in seen.items():
        if key not in kept.fields:
            who = parts(key)
            name = identity(who.manager, who.operation, version, who.subresource)
            taken.fields[name] = Owned(path, version, applied)
    return in_order(write(taken) + write(kept))


def _as_scale(key: str) -> str:
    who = parts(key)
    return identity(who.manager, who.operation, VERSION, who.subresource)
