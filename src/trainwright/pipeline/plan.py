"""What goes into a build besides the TrainJob and its runtime, and what comes out of it.

In: `Observed`, the facts about the cluster that a decision may depend on, and `KeyMaterial`, the only source of
secrets. Out: a `Plan`, objects in the order they must be written, each with the intention behind it. All data:
writing is the caller's part.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from trainwright.api.metadata import Condition, ObjectMeta, is_true
from trainwright.api.trainjob import JobStatus
from trainwright.schema.jsonobject import Json


class JobSetSpec(msgspec.Struct, frozen=True):
    suspend: bool | None = None


class JobSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: list[Condition] | None = None
    replicated_jobs_status: list[JobStatus] | None = None
    restarts: int = 0


class JobSet(msgspec.Struct, frozen=True):
    """What the pipeline reads of a JobSet; decodes from the object as the API server sends it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.suspend)

    @property
    def is_finished(self) -> bool:
        return is_true(self.status.conditions, "Completed") or is_true(self.status.conditions, "Failed")

    def is_controlled_by(self, uid: str) -> bool:
        owner = self.metadata.controller
        return owner is not None and owner.uid == uid


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What exists. The defaults are an empty cluster, which is what `render` shows."""

    jobset: JobSet | None = None
    """The JobSet of the TrainJob's name, whoever owns it."""
    pod_group_exists: bool = False
    ssh_secret_exists: bool = False
    """The MPI Secret is known to be there and to be this TrainJob's (D15)."""
    ca_certificate: str = ""
    """PEM text of the authority that signs the progress server's certificate."""
    priority_classes: frozenset[str] | None = None
    """The PriorityClasses there are; None when nobody has looked, and then nobody judges."""
    runtime_revision: str = ""
    """The name of the ControllerRevision that the runtime was read from (D25)."""


class KeyMaterial(Protocol):
    """Makes secrets. Each method returns the `data` of a Secret: base64 text by key."""

    def ssh_auth(self) -> dict[str, str]:
        """A fresh ECDSA P-521 pair: `ssh-privatekey` (SEC1 PEM) and `ssh-publickey` (authorized_keys line)."""

    def curve_certificate(self, name: str, uid: str) -> dict[str, str]:
        """`curve.cert`, a ZeroMQ CURVE certificate that is a function of the TrainJob's uid."""


class Apply(msgspec.Struct, frozen=True):
    """Server-side apply this object, taking over conflicting fields."""

    object: Json


class CreateOnce(msgspec.Struct, frozen=True):
    """Create this object; if it is there already it is left as it is."""

    object: Json


Intention = Apply | CreateOnce


class Plan(msgspec.Struct, frozen=True):
    """Objects to write, in order; empty when the TrainJob runs undisturbed."""

    objects: list[Intention]
    built_by: list[str]
    """The plugin behind each object, position by position."""
    warnings: list[str]


MASK = "<generated>"


class MaskedKeys:
    """Stands in for secrets where a plan is only shown."""

    def ssh_auth(self) -> dict[str, str]:
        return {"ssh-privatekey": MASK, "ssh-publickey": MASK}

    def curve_certificate(self, name: str, uid: str) -> dict[str, str]:
        return {"curve.cert": MASK}
