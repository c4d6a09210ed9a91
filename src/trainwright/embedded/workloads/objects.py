"""Objects as the workload controllers read them: typed metadata, spec and status as JSON without nulls. No I/O.

Every optional field of an object may be null, which means the same as absent: a Go client writes
`lastTransitionTime: null`. So nulls end here, and whoever reads has only absence to think of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from trainwright.api.mergepatches import changed_members, status_patch
from trainwright.api.metadata import ObjectMeta
from trainwright.api.times import seconds_of
from trainwright.schema.jsonobject import Json


class ApiObject(msgspec.Struct, frozen=True):
    """A JobSet, Job, Pod, Node, Service or PodGroup in a store."""

    metadata: ObjectMeta
    spec: Json = {}
    status: Json = {}

    def __post_init__(self) -> None:
        for field in ("spec", "status"):
            value = getattr(self, field)
            if _has_null(value):
                msgspec.structs.force_setattr(self, field, without_nulls(value))

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
        return condition is not None and condition.get("status") == "True"


def find_condition(conditions: Iterable[Json], type: str) -> Json | None:
    return next((condition for condition in conditions if condition.get("type") == type), None)


def changed_at(condition: Json) -> float:
    """When a condition last changed; before everything else if nobody wrote that down."""
    text = condition.get("lastTransitionTime")
    return seconds_of(text) if text else float("-inf")


def without_nulls(value: Any) -> Any:
    """The value with every null member and item left out; `{}` for null itself."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return {} if value is None else value


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(item is None or _has_null(item) for item in value.values())
    if isinstance(value, list):
        return any(item is None or _has_null(item) for item in value)
    return value is None


def controlled_by_uid(thing: ApiObject) -> list[str]:
    """Index: the uid of the controlling owner."""
    owner = thing.metadata.controller
    return [owner.uid] if owner else []


def changed_status(thing: ApiObject, status: Json) -> Json | None:
    """The merge patch from the stored status to this one; None when they are equal."""
    changes = changed_members(thing.status, status)
    return status_patch(thing.metadata, changes) if changes else None
