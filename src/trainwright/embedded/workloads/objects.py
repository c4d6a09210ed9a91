"""Objects as the workload controllers read them: typed metadata, spec and status as JSON. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trainwright.api.mergepatches import changed_members, status_patch
from trainwright.api.metadata import ObjectMeta
from trainwright.schema.jsonobject import Json


class ApiObject(msgspec.Struct, frozen=True):
    """A JobSet, Job, Pod, Node or Service in a store."""

    metadata: ObjectMeta
    spec: Json = {}
    status: Json = {}

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_being_deleted(self) -> bool:
        return self.metadata.is_being_deleted

    @property
    def phase(self) -> str:
        """A pod's phase."""
        return str(self.status.get("phase", "Pending"))

    def condition(self, type: str) -> Json | None:
        return find_condition(self.status.get("conditions") or (), type)

    def is_true(self, type: str) -> bool:
        condition = self.condition(type)
        return condition is not None and condition["status"] == "True"


def find_condition(conditions: Iterable[Json], type: str) -> Json | None:
    return next((condition for condition in conditions if condition["type"] == type), None)


def controlled_by_uid(thing: ApiObject) -> list[str]:
    """Index: the uid of the controlling owner."""
    owner = thing.metadata.controller
    return [owner.uid] if owner else []


def changed_status(thing: ApiObject, status: Json) -> Json | None:
    """The merge patch from the stored status to this one; None when they are equal."""
    changes = changed_members(thing.status, status)
    return status_patch(thing.metadata, changes) if changes else None
