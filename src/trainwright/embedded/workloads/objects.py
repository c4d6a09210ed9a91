"""Objects as the workload controllers see them: metadata typed, spec and status as they came.

Small typed accessors, no behaviour that does I/O.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import Resource
from trainwright.schema.jsonobject import Json


class Workload(msgspec.Struct, frozen=True):
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


def owner_reference(owner: Workload, resource: Resource) -> Json:
    """The reference that makes `owner` the controller of a child."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controlled_by_uid(thing: Workload) -> list[str]:
    """Index: the uid of the controlling owner."""
    owner = thing.metadata.controller
    return [owner.uid] if owner else []


def status_patch(thing: Workload, status: Json) -> Json | None:
    """A merge patch that makes the stored status this one, bound to the version it was computed from; None if it is."""
    changes: Json = {key: value for key, value in status.items() if thing.status.get(key) != value}
    changes.update({key: None for key in thing.status if key not in status})
    if not changes:
        return None
    bound = {"uid": thing.metadata.uid, "resourceVersion": thing.metadata.resource_version}
    return {"metadata": bound, "status": changes}
