"""The workload: the one object that runs a TrainJob's pods, whatever its kind is.

A plugin builds it (`Apply(object, workload=True)`), names its kind (`Watch(resource, decode, workload=True)`) and says
what became of it (`WorkloadStatus`). The rest of the core knows no kind of workload: deadline, suspension, the latch
of Complete and Failed, clean-up and admission are decided from a `WorkloadStatus`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from trainwright.api.metadata import Condition, ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import Resource
from trainwright.api.trainjob import COMPLETE, FAILED, JobStatus
from trainwright.pipeline.elasticity import NodeRange
from trainwright.pipeline.ownership import BUILT_BY_US
from trainwright.schema.jsonobject import Json

WORKLOAD_ANNOTATION = "trainwright.dev/workload"
"""On a workload: the plugin that built it, and that reports its status."""
PLUGINS_ANNOTATION = "trainwright.dev/plugins"
"""On a workload: the digest of the plugins from outside that it was last started with; absent when there were none."""


GENERATION_ANNOTATION = "trainwright.dev/trainjob-generation"
"""On a workload: the generation of the TrainJob that it was built from."""
CHILDREN_ANNOTATION = "trainwright.dev/children"
"""On a workload: the objects that belong beside it while it runs, if there are any."""
LIFETIME_ANNOTATION = "trainwright.dev/ttl-seconds-after-finished"
"""On a workload: how long after its end the operator deletes it. A workload never removes itself: its end would be
missed by an operator that was away.
"""


class Watch(msgspec.Struct, frozen=True):
    """A kind that a plugin's objects live in. The operator watches it and may write it.

    `decode` is what the operator keeps of each object in memory: a frozen Struct with `metadata: ObjectMeta` and the
    fields that `status` reads. By default that is the metadata alone, which is all the API server then sends.
    """

    resource: Resource
    decode: type[Any] = PartialObjectMetadata
    workload: bool = False
    """An object of this kind can be a TrainJob's workload; `decode`d, it is what the plugin's `status` gets."""
    label_selector: str = BUILT_BY_US
    """Which objects to watch; empty for all. Every object that a build makes carries the default's label."""
    part_of: str = ""
    """Objects of this kind are made by the workload's own controller: this label of theirs names the workload."""

    def is_of(self, api_version: str, kind: str) -> bool:
        return self.resource.kind == kind and self.resource.api_version == api_version


class WorkloadStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a workload, in a TrainJob's terms. The defaults are a workload that nobody has acted on yet."""

    end: Condition | None = None
    """How it ended: a condition of type Complete or Failed, with reason, message and time; None while it has not."""
    jobs: list[JobStatus] = []
    """How its parts fare; `status.jobsStatus` of the TrainJob."""
    is_suspended: bool = False
    """It is asked to run no pods."""
    is_at_rest: bool = False
    """No pod of it is left, so that it can be replaced without anybody losing work."""
    owns_claims: bool = False
    """It owns PersistentVolumeClaims that would be deleted with it, so that it must not be replaced."""
    mend: Json | None = None
    """A merge patch that it needs before anything else, such as one that takes away a time to live of its own."""
    halt: Json | None = None
    """A merge patch that asks it to run no pods and changes nothing else: for one that another operator or another
    version built otherwise, and that the API server lets nobody rebuild while it runs.
    """
    restarts: int = 0
    message: str = ""
    """What it is doing or waiting for, in words. Empty leaves that to `jobs`."""

    pods: str = ""
    """The label selector of its pods. With it, the operator can say why they fail or wait."""

    node_range: NodeRange | None = None
    """Between how many nodes it may be scaled while it runs; None when it may not."""
    node_pods: str = ""
    """The label selector of its nodes' pods, where it may be scaled."""

    @property
    def is_finished(self) -> bool:
        return self.end is not None


class Workload(msgspec.Struct, frozen=True):
    """A TrainJob's workload as it was observed."""

    resource: Resource
    metadata: ObjectMeta
    plugin: str
    """Who built it and reports its status."""
    status: WorkloadStatus
    stored: Json | None = None
    """The whole object as the API server holds it; read only when a build is about to change it."""


class SomeCondition(Protocol):
    """Any kind's condition."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def last_transition_time(self) -> str: ...


def end_of(conditions: Iterable[SomeCondition] | None, *, complete: str, failed: str = FAILED) -> Condition | None:
    """A workload's end by the conditions that its own controller set; `complete` and `failed` are their types."""
    by_type = {condition.type: condition for condition in conditions or () if condition.status == "True"}
    for theirs, ours in ((complete, COMPLETE), (failed, FAILED)):
        end = by_type.get(theirs)
        if end is not None:
            return Condition(ours, "True", end.reason or ours, end.message, end.last_transition_time)
    return None
