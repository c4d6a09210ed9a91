"""`metadata.managedFields` read into field sets by manager, and written back."""

from __future__ import annotations

from typing import Any, NamedTuple

from trainwright.embedded.apiserver.fieldmanager import fieldset
from trainwright.embedded.apiserver.fieldmanager.fieldset import FieldSet
from trainwright.schema.jsonobject import Json

MAX_UPDATERS = 10


class Identity(NamedTuple):
    """What tells one manager's entry from another's. The order of identities is kube-apiserver's."""

    manager: str
    operation: str
    version: str  # empty for appliers: an applier has one entry, whatever version it speaks
    subresource: str

    @classmethod
    def of(cls, manager: str, operation: str, version: str, subresource: str) -> Identity:
        return cls(manager, operation, "" if operation == "Apply" else version, subresource)


class Owned(NamedTuple):
    """One manager's fields, in the version it spoke."""

    fields: FieldSet
    version: str


Managers = dict[Identity, Owned]


class Managed:
    """All managers of one object, and when each last changed it."""

    def __init__(self, fields: Managers | None = None, times: dict[Identity, str] | None = None) -> None:
        self.fields: Managers = fields or {}
        self.times: dict[Identity, str] = times or {}


def read(entries: Any) -> Managed | None:
    """The entries a client sent; None if one of them is malformed."""
    if not isinstance(entries, list | None):
        return None
    return _managed(entries) if all(map(_well_formed, entries or ())) else None


def stored(entries: list[Json] | None) -> Managed:
    """The entries of a stored object, which were checked when they came in."""
    return _managed(entries)


def _well_formed(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
        return False
    if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
        return False
    fields = entry.get("fieldsV1") or {}
    return isinstance(fields, dict) and _well_formed_fields(fields)


def _well_formed_fields(fields: Json) -> bool:
    for element, below in fields.items():
        if element != "." and element[:2] not in ("f:", "k:", "v:", "i:"):
            return False
        if not isinstance(below, dict) or not _well_formed_fields(below):
            return False
    return True


def _managed(entries: list[Json] | None) -> Managed:
    managed = Managed()
    for entry in entries or ():
        version = str(entry["apiVersion"])
        who = Identity.of(entry.get("manager", ""), entry["operation"], version, entry.get("subresource", ""))
        managed.fields[who] = Owned(entry.get("fieldsV1") or {}, version)
        if entry.get("time"):
            managed.times[who] = entry["time"]
    return managed


def write(managed: Managed) -> list[Json]:
    entries = []
    for who, owned in managed.fields.items():
        entry: Json = {"manager": who.manager, "operation": who.operation, "apiVersion": owned.version}
        if not who.manager:
            del entry["manager"]
        if who in managed.times:
            entry["time"] = managed.times[who]
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = owned.fields
        if who.subresource:
            entry["subresource"] = who.subresource
        entries.append(entry)
    return in_order(entries)


def in_order(entries: list[Json]) -> list[Json]:
    return sorted(
        entries,
        key=lambda e: (
            e["operation"],
            e.get("time", ""),
            e.get("manager", ""),
            e["apiVersion"],
            e.get("subresource", ""),
        ),
    )


def same_but_times(left: list[Json] | None, right: list[Json] | None) -> bool:
    """Whether two lists of entries are equal, times aside."""
    if len(left or ()) != len(right or ()):
        return False
    known = {_identity(entry): entry.get("fieldsV1") for entry in left or ()}
    return all(known.get(_identity(entry)) == entry.get("fieldsV1") for entry in right or ())


def _identity(entry: Json) -> tuple[Any, ...]:
    return (entry.get("manager", ""), entry["operation"], entry.get("apiVersion"), entry.get("subresource", ""))


def cap_updaters(managed: Managed) -> None:
    """Keep at most ten updaters: join the oldest of each version in one entry, `ancient-changes`."""
    updaters = [who for who in managed.fields if who.operation == "Update"]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return
    first: dict[str, Identity] = {}
    for who in sorted(updaters, key=lambda who: (managed.times.get(who, ""), who)):
        if excess == 0:
            return
        fields, version = managed.fields[who]
        if version not in first:
            first[version] = who
            continue
        ancient = Identity.of("ancient-changes", "Update", version, "")
        if ancient not in managed.fields:
            managed.fields[ancient] = managed.fields.pop(first[version])
        managed.fields[ancient] = Owned(fieldset.union(fields, managed.fields[ancient].fields), version)
        del managed.fields[who]
        if who in managed.times:
            managed.times[ancient] = managed.times[who]
        excess -= 1
