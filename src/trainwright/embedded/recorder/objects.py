"""The parts of Kubernetes objects that a run's record is made of."""

from __future__ import annotations

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import COMPLETION_INDEX, JOBSET_NAME, REPLICATED_JOB, RUN_TRAINJOB
from trainwright.controlloop import Key
from trainwright.schema.jsonobject import Json

JOB_INDEX = "jobset.sigs.k8s.io/job-index"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"


class Manager(msgspec.Struct, frozen=True, gc=False):
    """Who set some of an object's fields; which ones is not kept."""

    manager: str = ""


class ManagedMeta(ObjectMeta, frozen=True, omit_defaults=True, rename="camel", gc=False):
    managed_fields: list[Manager] | None = None


class SubmittedJob(TrainJob, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A TrainJob, and under which names clients have set its fields."""

    metadata: ManagedMeta = ManagedMeta()


class JobSet(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: Json | None = None

    @property
    def restarts(self) -> int:
        return int((self.status or {}).get("restarts") or 0)


class Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: Json | None = None

    @property
    def trainjob(self) -> tuple[str, str]:
        """Name and uid of the pod's TrainJob; empty for a pod of none. A pod that was made before pods said so has no
        uid, and the name of its JobSet.
        """
        name, _, uid = (self.metadata.annotation(RUN_TRAINJOB) or "").partition("/")
        return (name, uid) if uid else (self.metadata.label(JOBSET_NAME) or "", "")

    def is_of(self, uid: str) -> bool:
        """Whether it is, or may be, of the TrainJob of its namespace and name that has this uid."""
        return self.trainjob[1] in (uid, "")

    @property
    def is_of_older_version(self) -> bool:
        """Whether it was made before pods belonged to runs."""
        return not self.metadata.annotation(RUN_TRAINJOB)

    @property
    def is_over(self) -> bool:
        return (self.status or {}).get("phase") in ("Succeeded", "Failed")

    @property
    def attempt(self) -> int:
        text = self.metadata.label(ATTEMPT) or self.metadata.annotation(ATTEMPT) or ""
        return int(text) if text.isdecimal() else 0

    @property
    def node(self) -> tuple[str, str] | None:
        """Which node of the training it is; None for a pod that is none, such as an initializer's."""
        if self.metadata.label(REPLICATED_JOB) != "node":
            return None
        return self.metadata.label(JOB_INDEX) or "", self.metadata.label(COMPLETION_INDEX) or ""

    @property
    def is_running(self) -> bool:
        return (self.status or {}).get("phase") == "Running"

    @property
    def terminated(self) -> list[Json]:
        """How its containers ended, those that did."""
        return [state["terminated"] for state in self._states() if state.get("terminated")]

    @property
    def started_at(self) -> str | None:
        """When the first of its containers started."""
        times = [(state.get("running") or state.get("terminated") or {}).get("startedAt") for state in self._states()]
        return min((time for time in times if time), default=None)

    def _states(self) -> list[Json]:
        status = self.status or {}
        found = []
        for field in ("initContainerStatuses", "containerStatuses"):
            for container in status.get(field) or ():
                found += [container.get("lastState") or {}, container.get("state") or {}]
        return found


class Event(msgspec.Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    involved_object: Json = {}
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def time(self) -> str:
        return self.last_timestamp or self.event_time or self.metadata.creation_timestamp or ""


def keys_of_pod(pod: Pod) -> list[Key]:
    name, _ = pod.trainjob
    return [Key(pod.metadata.namespace, name)] if name else []
