"""`metadata.managedFields` read into named sets and written back.

A manager's identity is its name, operation and subresource, for updates also its version; the identity is the dict key
everywhere here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trainwright.embedded.apiserver.fieldmanager.updater import Managers, Owned
from trainwright.schema.jsonobject import Json


class Identity(NamedTuple):
    manager: str
    operation: str
    version: str  # empty for appliers: they keep one entry whatever version they speak
    subresource: str


def identity(manager: str, operation: str, version: str, subresource: str) -> str:
    """As a string, so that sorting by it is what kube-apiserver does."""
    shown = "" if operation == "Apply" else version
    return "\0".join((manager, operation, shown, subresource))


def parts(key: str) -> Identity:
    return Identity(*key.split("\0"))


class Managed:
    """The sets by identity, and when each last changed."""

    def __init__(self, fields: Managers | None = None, times: dict[str, str] | None = None) -> None:
        self.fields: Managers = fields or {}
        self.times: dict[str, str] = times or {}


def read(entries: Any, *, ours: bool = False) -> Managed | None:
    """None if an entry is not understood; those we stored ourselves are."""
    managed = Managed()
    if entries is None:
        return managed
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return None
        if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
            return None
        fields = entry.get("fieldsV1") or {}
        if not ours and not (isinstance(fields, dict) and _well_formed(fields)):
            return None
        version = str(entry["apiVersion"])
        key = identity(entry.get("manager", ""), entry["operation"], version, entry.get("subresource", ""))
        managed.fields[key] = Owned(fields, version, entry["operation"] == "Apply")
        if entry.get("time"):
            managed.times[key] = entry["time"]
    return managed


def _well_formed(fields: Json) -> bool:
    for element, below in fields.items():
        if element != "." and element[:2] not in ("f:", "k:", "v:", "i:"):
            return False
        if not isinstance(below, dict) or not _well_formed(below):
            return False
    return True


def write(managed: Managed) -> list[Json]:
    entries = []
    for key, owned in managed.fields.items():
        who = parts(key)
        entry: Json = {"manager": who.manager, "operation": who.operation, "apiVersion": owned.version}
        if not who.manager:
            del entry["manager"]
        if key in managed.times:
            entry["time"] = managed.times[key]
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
    """Whether two lists of entries say the same, times aside."""
    if len(left or ()) != len(right or ()):
        return False
    known = {_identity(entry): entry.get("fieldsV1") for entry in left or ()}
    return all(known.get(_identity(entry)) == entry.get("fieldsV1") for entry in right or ())


def _identity(entry: Json) -> tuple[Any, ...]:
    return (entry.get("manager", ""), entry["operation"], entry.get("apiVersion"), entry.get("subresource", ""))
