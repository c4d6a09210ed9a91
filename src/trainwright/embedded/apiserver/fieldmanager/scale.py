"""Ownership of `replicas` after a write through the scale subresource.

In: the managers of the object, and the replicas before and after. Out: the new entries.

A Scale is a view of the object: it carries only the managers that own the replicas, under its own version and without
times, and the managers it has after the write replace those. Clients see two oddities of kube-apiserver that follow: an
updater that owns the replicas among other fields gets a second entry for them, without a time, even if nothing changed;
and zero replicas count as unset, so that nobody owns them.
"""

from __future__ import annotations

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.entries import Identity, Managed, Owned, in_order, write
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.schema.jsonobject import Json

VERSION = "autoscaling/v1"


def scaled(managed: Managed, path: FieldSet, before: int, after: int, manager: str, version: str) -> list[Json]:
    """The managedFields entries of the scaled object. `path` is the set of just the replicas."""
    owners = {who for who, owned in managed.fields.items() if fieldset.intersection(owned.fields, path)}
    seen = {_in_version(who, VERSION) for who in owners}
    if seen and before != after:  # an object whose replicas nobody owns looks untracked, and stays so
        seen = {Identity.of(manager, "Update", VERSION, "scale")} if after else set()
    kept = Managed(times=managed.times)
    for who, owned in managed.fields.items():
        if who not in owners or who in seen:  # the identity of an applier has no version, so its entry is the same
            kept.fields[who] = owned
            continue
        rest = fieldset.difference(owned.fields, path)
        if rest:
            kept.fields[who] = owned._replace(fields=rest)
    taken = Managed({_in_version(who, version): Owned(path, version) for who in seen if who not in kept.fields})
    return in_order(write(taken) + write(kept))


def _in_version(who: Identity, version: str) -> Identity:
    return Identity.of(who.manager, who.operation, version, who.subresource)
