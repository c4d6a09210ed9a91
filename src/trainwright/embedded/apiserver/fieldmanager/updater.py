"""Apply and Update on named field sets: who owns what after an operation, and who objects to it.

In: a live object, the configuration or new object, and the sets by manager. Out: the new object and the new sets, or
`Conflicts`.
"""

from __future__ import annotations

from typing import NamedTuple

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.embedded.apiserver.fieldmanager.merge import merge
from trainwright.embedded.apiserver.fieldmanager.nodes import Node
from trainwright.embedded.apiserver.fieldmanager.walk import Comparison, compare, fields_of, remove
from trainwright.schema.jsonobject import Json


class Owned(NamedTuple):
    """One manager's fields, in the version it spoke."""

    fields: FieldSet
    version: str
    applied: bool


Managers = dict[str, Owned]


class Conflicts(Exception):
    """Another manager owns fields that this apply would change."""

    def __init__(self, by_manager: dict[str, FieldSet]) -> None:
        super().__init__("apply conflicts")
        self.by_manager = by_manager


def update(
    node: Node, live: Json, new: Json, version: str, managers: Managers, manager: str, ignored: FieldSet
) -> Managers:
    """A write that is not an apply: what it changed is its own now, without asking."""
    managers, comparison = _take_over(node, live, new, managers, manager, force=True, ignored=ignored)
    before = managers[manager].fields if manager in managers else {}
    mine = fieldset.difference(before, comparison.removed)
    mine = fieldset.union(fieldset.union(mine, comparison.modified), comparison.added)
    if mine:
        managers[manager] = Owned(mine, version, False)
    else:
        managers.pop(manager, None)
    return managers


def apply(
    node: Node,
    live: Json,
    config: Json,
    fields: FieldSet,
    stored: FieldSet,
    version: str,
    managers: Managers,
    manager: str,
    *,
    force: bool,
    ignored: FieldSet,
) -> tuple[Json, Managers]:
    """Merge, drop what this manager no longer applies and nobody else owns, then settle ownership.

    `fields` are those that `config` sets, `stored` what managedFields keeps of them.
    """
    merged: Json = merge(node, live, config)
    last = managers.get(manager)
    managers = {**managers, manager: Owned(fields, version, True)}
    if last is not None and last.fields and last.fields != stored:
        merged = _prune(node, merged, managers, last.fields, fields)
    managers, _ = _take_over(node, live, merged, managers, manager, force=force, ignored=ignored)
    return merged, managers


def _take_over(
    node: Node, live: Json, new: Json, managers: Managers, manager: str, *, force: bool, ignored: FieldSet
) -> tuple[Managers, Comparison]:
    comparison = compare(node, live, new)
    if ignored:
        comparison = Comparison(*(fieldset.without(part, ignored) for part in comparison))
    if not comparison.changed:
        return {name: owned for name, owned in managers.items() if owned.fields}, comparison
    touched = fieldset.union(comparison.modified, comparison.added)
    conflicts: dict[str, FieldSet] = {}
    result: Managers = {}
    for name, owned in managers.items():
        if name == manager:
            result[name] = owned
            continue
        common = fieldset.intersection(owned.fields, touched)
        if common:
            conflicts[name] = common
        left = fieldset.difference(fieldset.difference(owned.fields, common), comparison.removed)
        if left:
            result[name] = owned._replace(fields=left)
    if conflicts and not force:
        raise Conflicts(conflicts)
    return {name: owned for name, owned in result.items() if owned.fields}, comparison


def _prune(node: Node, merged: Json, managers: Managers, last: FieldSet, now: FieldSet) -> Json:
    """Remove what this manager applied last time, not this time, and nobody else owns."""
    if not fieldset.difference(last, now):
        return merged
    ensure = fieldset.ensure_fields_are_members
    pruned = remove(node, merged, ensure(last, node)) or {}
    all_fields = ensure(fields_of(node, merged), node)
    # What was removed but belongs to someone (this manager's new configuration included) comes back.
    owned: FieldSet = {}
    for manager in managers.values():
        owned = fieldset.union(owned, manager.fields)
    kept = fieldset.union(ensure(fields_of(node, pruned), node), ensure(owned, node))
    pruned = remove(node, merged, fieldset.difference(all_fields, kept)) or {}
    # What nobody owned before stays as well.
    lost = fieldset.difference(all_fields, ensure(fields_of(node, pruned), node))
    return remove(node, merged, fieldset.intersection(lost, ensure(last, node))) or {}
