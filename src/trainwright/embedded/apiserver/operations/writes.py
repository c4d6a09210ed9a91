"""Writes as values: what is to be changed, on whose behalf and under which conditions, before anything is tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json


class WriteOptions(msgspec.Struct, frozen=True):
    """What query parameters say about a write."""

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False


class Wanted(NamedTuple):
    """The object that a write wants stored, decoded and defaulted; it is the writer's to change.

    It is not canonical if reading it back would change it: what server-side apply merges is stored as it was written,
    and empty maps, nulls in labels and fields that pruning drops vanish only when it is read. Until an object is
    stored in canonical form, even a write that changes nothing stores it again.
    """

    obj: Json
    canonical: bool = True


Compute = Callable[[Json | None], Wanted | None]
"""From the stored object (None if there is none) to the wanted one; None if the stored one is already as wanted, down
to its owners. May be called again when the stored object has moved on. An apply leaves what it is given alone, every
other computation may change it."""


class Write(msgspec.Struct, frozen=True):
    """One change of one object."""

    served: Type
    key: Key  # of a new object the name may be empty, to be generated
    user: User
    options: WriteOptions
    compute: Compute
    subresource: str = ""
    method: Literal["create", "update", "patch", "apply"] = "update"
    creates: bool = False  # an object that is missing is made
    recomputes: bool = False  # a change that a webhook's wait made stale is computed anew, not refused
    uid: str = ""  # if set, the object must have this UID

    @property
    def applies(self) -> bool:
        """`compute` has settled who owns which field."""
        return self.method == "apply"


def replacing(obj: Json) -> Compute:
    """Whatever is stored, this is wanted."""
    return lambda stored: Wanted(obj)


def in_place(change: Callable[[Json], None]) -> Compute:
    """A change that the server makes to an object that is there."""

    def compute(stored: Json | None) -> Wanted:
        assert stored is not None, "the object was looked up before"
        change(stored)
        return Wanted(stored)

    return compute
