"""ObjectMeta and its parts, and conditions.

In: JSON of any object's `metadata`. Out: frozen Structs with Python names; absent members are absent again when
encoded. Times stay text: they are compared and copied, and must be written back exactly as the API server wrote them.

Stores keep many thousands of these. They are trees, so the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from trainwright.api.markers import mark
from trainwright.api.resources import Resource
from trainwright.schema.jsonobject import Json

_CONDITION_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class OwnerReference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Who owns an object: the garbage collector follows `uid`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An object's metadata, without `managedFields`: they are half of an object, and who needs them reads its JSON."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def is_being_deleted(self) -> bool:
        return self.deletion_timestamp is not None

    def label(self, key: str) -> str | None:
        return self.labels.get(key) if self.labels else None

    def annotation(self, key: str) -> str | None:
        return self.annotations.get(key) if self.annotations else None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if any."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None

    def is_controlled_by(self, uid: str) -> bool:
        """Whether the object of this uid manages this one."""
        owner = self.controller
        return owner is not None and owner.uid == uid


class PartialObjectMetadata(msgspec.Struct, frozen=True, gc=False):
    """Any object by its metadata alone; the API server can send just that much."""

    metadata: ObjectMeta = ObjectMeta()


def controller_reference(resource: Resource, owner: ObjectMeta) -> Json:
    """The owner reference that makes `owner` the controller of a child."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A metav1.Condition: one aspect of an object's state. `message` may be empty but is always written."""

    type: Annotated[str, mark("Type of the condition.", maxLength=316, pattern=_CONDITION_TYPE)]
    status: Annotated[str, mark("Whether the condition holds.", enum=["True", "False", "Unknown"])]
    reason: Annotated[
        str, mark("Reason for the status, as one word for programs.", minLength=1, maxLength=1024, pattern=_REASON)
    ]
    message: Annotated[str, mark("Reason for the status, as a sentence for people.", maxLength=32768)]
    last_transition_time: Annotated[str, mark("When the status last changed.", format="date-time")]
    observed_generation: Annotated[
        int | None, mark("Generation of the spec that the condition is about.", format="int64", minimum=0)
    ] = None

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def find_condition(conditions: list[Condition] | None, type: str) -> Condition | None:
    """The condition of that type, or None."""
    for condition in conditions or ():
        if condition.type == type:
            return condition
    return None


def is_true(conditions: list[Condition] | None, type: str) -> bool:
    condition = find_condition(conditions, type)
    return condition is not None and condition.is_true
