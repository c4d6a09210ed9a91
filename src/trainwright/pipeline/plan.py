"""What goes into a build besides the TrainJob and its runtime, and what comes out of it.

In: `Observed`, the facts about the cluster that a decision may depend on, and `KeyMaterial`, the only source of
secrets. Out: a `Plan`, objects in the order they must be written, each with the intention behind it. All data:
writing is the caller's part.
"""

from __future__ import annotations

import enum
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from trainwright.pipeline.workload import Workload
from trainwright.schema.jsonobject import Json


class ObjectName(NamedTuple):
    """One object in the TrainJob's namespace."""

    api_version: str
    kind: str
    name: str

    @classmethod
    def of(cls, body: Json) -> ObjectName:
        return cls(str(body["apiVersion"]), str(body["kind"]), str(body["metadata"]["name"]))


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What exists. The defaults are an empty cluster, which is what `render` shows."""

    workload: Workload | None = None
    """This TrainJob's workload."""
    children: frozenset[ObjectName] = frozenset()
    """This TrainJob's objects of the kinds that plugins watch."""
    taken: frozenset[ObjectName] = frozenset()
    """Objects with the TrainJob's name that belong to somebody else."""
    ca_certificate: str = ""
    """PEM text of the authority that signs the progress server's certificate."""
    priority_classes: frozenset[str] | None = None
    """The PriorityClasses there are; None when nobody has looked, and then nobody judges."""
    local_node: bool = False
    """Pods are processes of one machine, whose node has to know which variables carry ports, and the like. In a cluster
    nobody reads that: there the JobSet is what Kubeflow Trainer would make, so that either can go on with it.
    """
    runtime_revision: str = ""
    """The name of the ControllerRevision that the runtime was read from."""


class KeyMaterial(Protocol):
    """Makes secrets. Each method returns the `data` of a Secret: base64 text by key."""

    def ssh_auth(self) -> dict[str, str]:
        """A fresh ECDSA P-521 pair: `ssh-privatekey` (SEC1 PEM) and `ssh-publickey` (authorized_keys line)."""

    def curve_certificate(self, name: str, uid: str) -> dict[str, str]:
        """`curve.cert`, a ZeroMQ CURVE certificate that is a function of the TrainJob's uid."""


class Repair(enum.Enum):
    """When an object is written beside a workload that runs."""

    NEVER = "never"
    """It waits for the next start. So do all Secrets: nobody reads them, so nobody knows whether they are missing."""
    MISSING = "missing"
    """It is put back when it is gone."""
    CHANGED = "changed"
    """It is put back when it is gone, and put right when it differs from what the build makes."""


class Apply(msgspec.Struct, frozen=True):
    """Server-side apply this object, taking over conflicting fields."""

    object: Json
    workload: bool = False
    """This object runs the TrainJob's pods. It has the TrainJob's name; it is written when it is missing, while the
    TrainJob is suspended and when it must be resumed, and left alone while it runs. `repair` is not asked.
    """
    repair: Repair = Repair.MISSING


class CreateOnce(msgspec.Struct, frozen=True):
    """Create this object; if it is there already it is left as it is. It is never a workload."""

    object: Json
    repair: Repair = Repair.MISSING
    workload: ClassVar[bool] = False


Intention = Apply | CreateOnce


class Plan(msgspec.Struct, frozen=True):
    """Objects to write, in order; empty when the TrainJob runs undisturbed."""

    objects: list[Intention]
    built_by: list[str]
    """The plugin behind each object, position by position."""
    warnings: list[str]
    repaired: dict[ObjectName, Repair] = {}
    """Every object that belongs beside the running workload, written now or not."""
    needs: dict[tuple[str, str], str] = {}
    """Every kind of object that was built, by apiVersion and kind, with the plugin that built it; Secrets aside."""
    plugins_changed: bool = False
    """The workload is resumed, with other plugins from outside than it was last started with."""

    @property
    def workload(self) -> tuple[str, Json] | None:
        """The workload and the plugin that built it, where it is to be written."""
        pairs = zip(self.built_by, self.objects, strict=True)
        return next(((plugin, it.object) for plugin, it in pairs if it.workload), None)


MASK = "<generated>"


class MaskedKeys:
    """Stands in for secrets where a plan is only shown."""

    def ssh_auth(self) -> dict[str, str]:
        return {"ssh-privatekey": MASK, "ssh-publickey": MASK}

    def curve_certificate(self, name: str, uid: str) -> dict[str, str]:
        return {"curve.cert": MASK}
