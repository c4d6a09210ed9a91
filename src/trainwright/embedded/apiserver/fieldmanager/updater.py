"""Ownership of fields through updates and applies.

In: a live object, the new object or the applied configuration, and the managers' field sets. Out: the merged object and
the new field sets, or `Conflicts`.
"""

from __future__ import annotations

from typing import NamedTuple

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.comparison import Comparison, compare
from trainwright.embedded.apiserver.fieldmanager.conflicts import Conflicts
from trainwright.embedded.apiserver.fieldmanager.entries import Identity, Managers, Owned
from trainwright.embedded.apiserver.fieldmanager.fields import fields_of
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.merge import merge
from trainwright.embedded.apiserver.fieldmanager.nodes import Node
from trainwright.embedded.apiserver.fieldmanager.removal import remove
from trainwright.schema.jsonobject import Json


class AppliedConfiguration(NamedTuple):
    """What a client applies, and the fields it sets."""

    config: Json
    fields: FieldSet
    stored: FieldSet  # the part of `fields` that managedFields records


class Updater(NamedTuple):
    """The rules of ownership for one endpoint: a version of a type or one of its subresources."""

    node: Node
    version: str
    ignored: FieldSet  # fields that this endpoint cannot change

    def update(self, live: Json, new: Json, managers: Managers) -> tuple[Managers, FieldSet]:
        """A write that is not an apply takes the fields it changes from everybody. Returns what the managers keep, and
        what the writer gained."""
        changes = self._changes(live, new)
        return _kept(managers, changes), fieldset.union(changes.modified, changes.added)

    def apply(
        self, live: Json, applied: AppliedConfiguration, managers: Managers, manager: Identity, *, force: bool
    ) -> tuple[Json, Managers]:
        """Merge the configuration, drop fields that this manager no longer applies and nobody else owns, and settle
        ownership."""
        merged: Json = merge(self.node, live, applied.config)
        others = {who: owned for who, owned in managers.items() if who != manager}
        last = managers[manager].fields if manager in managers else {}
        if last and last != applied.stored:
            merged = self._prune(merged, last, applied.fields, others)
        changes = self._changes(live, merged)
        conflicts = _conflicts(others, changes)
        if conflicts and not force:
            raise Conflicts(conflicts)
        result = _kept(others, changes)
        if applied.stored:
            result[manager] = Owned(applied.stored, self.version)
        return merged, result

    def _changes(self, live: Json, new: Json) -> Comparison:
        changes = compare(self.node, live, new)
        return Comparison(*(fieldset.without(part, self.ignored) for part in changes)) if self.ignored else changes

    def _prune(self, merged: Json, last: FieldSet, now: FieldSet, others: Managers) -> Json:
        """Remove the fields that this manager applied last time, does not apply now, and nobody else owns."""
        if not fieldset.difference(last, now):
            return merged
        everything, applied_before = self._members(fields_of(self.node, merged)), self._members(last)
        # Removing a struct or a list item takes along what others own below it: those fields come back.
        owned = now
        for other in others.values():
            owned = fieldset.union(owned, other.fields)
        rest = remove(self.node, merged, applied_before) or {}
        kept = fieldset.union(self._members(fields_of(self.node, rest)), self._members(owned))
        pruned = remove(self.node, merged, fieldset.difference(everything, kept)) or {}
        # Fields that nobody owned before stay too.
        lost = fieldset.difference(everything, self._members(fields_of(self.node, pruned)))
        return remove(self.node, merged, fieldset.intersection(lost, applied_before)) or {}

    def _members(self, fields: FieldSet) -> FieldSet:
        return fieldset.ensure_fields_are_members(fields, self.node)


def _conflicts(others: Managers, changes: Comparison) -> dict[Identity, FieldSet]:
    touched = fieldset.union(changes.modified, changes.added)
    common = {who: fieldset.intersection(owned.fields, touched) for who, owned in others.items()}
    return {who: fields for who, fields in common.items() if fields}


def _kept(managers: Managers, changes: Comparison) -> Managers:
    """What managers still own after somebody else changed, added and removed fields."""
    gone = fieldset.union(fieldset.union(changes.modified, changes.added), changes.removed)
    left = {who: owned._replace(fields=fieldset.difference(owned.fields, gone)) for who, owned in managers.items()}
    return {who: owned for who, owned in left.items() if owned.fields}
