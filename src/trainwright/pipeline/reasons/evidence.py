"""What is known about a TrainJob: the objects that a reason is found in, as the API serves them.

Who knows less gives less: the operator gives the job and its pods, the command line whatever its user may read. Every
optional field of an object may be missing or null, and no object is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.schema.jsonobject import Json


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    job: Json
    """The TrainJob."""
    workload: Json | None = None
    """Its JobSet, or what else runs its pods."""
    pods: Sequence[Json] = ()
    problem: str = ""
    """Why the operator could not write what it wanted, in its words; by default those of the job's status."""
    jobs: Sequence[Json] = ()
    """The batch Jobs of the workload."""
    events: Sequence[Json] = ()
    """Of the job and of whatever belongs to it, oldest first."""
    nodes: Sequence[Json] = ()
    claims: Sequence[Json] | None = None
    """The PersistentVolumeClaims of the namespace; None when nobody looked."""
    queued: Sequence[Json] = ()
    """Kueue's Workloads of this job."""
    places: Sequence[Json] = ()
    """Of Workloads that wait in the same queues: PendingWorkloads of Kueue's visibility API."""
    pod_groups: Sequence[Json] = ()
    logs: Mapping[str, Sequence[str]] = {}
    """The last lines of containers, by `pod/container`."""
    has_operator: bool | None = None
    """Whether an operator runs; None when nobody looked."""
    now: float = 0.0
    """Seconds since the epoch; 0 when time does not count."""


class Ended(msgspec.Struct, frozen=True):
    """A container that ended with an error."""

    pod: Json
    container: str
    terminated: Json
    lines: Sequence[str]
    """Its last lines, as far as they are known."""

    @property
    def code(self) -> int:
        return int(self.terminated.get("exitCode") or 0)

    @property
    def signal(self) -> int:
        """The signal that ended it, as the runtime or the exit code tells."""
        number = int(self.terminated.get("signal") or 0)
        return number or (self.code - 128 if 128 < self.code < 160 else 0)

    @property
    def reason(self) -> str:
        return str(self.terminated.get("reason") or "")

    @property
    def time(self) -> str:
        return str(self.terminated.get("finishedAt") or "")


def ended(evidence: Evidence) -> list[Ended]:
    """The containers that failed, in the order in which they did."""
    found = []
    for pod in evidence.pods:
        for container in container_statuses(pod):
            for state in (container.get("state") or {}, container.get("lastState") or {}):
                terminated = state.get("terminated")
                if terminated and terminated.get("exitCode") != 0:
                    name = str(container.get("name") or "")
                    lines = evidence.logs.get(f"{name_of(pod)}/{name}")
                    if lines is None:
                        lines = str(terminated.get("message") or "").splitlines()
                    found.append(Ended(pod, name, terminated, lines))
                    break
    return sorted(found, key=lambda one: (one.time, index_of(one.pod)))


# Reading objects


def status_of(obj: Json) -> Json:
    return obj.get("status") or {}


def conditions_of(obj: Json) -> Iterator[Json]:
    yield from status_of(obj).get("conditions") or ()


def condition_of(obj: Json, kind: str, status: str = "True") -> Json | None:
    """The condition of this type, when it has this status."""
    for item in conditions_of(obj):
        if item.get("type") == kind and item.get("status") == status:
            return item
    return None


def container_statuses(pod: Json) -> list[Json]:
    status = status_of(pod)
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def phase_name(pod: Json) -> str:
    return str(status_of(pod).get("phase") or "Pending")


def name_of(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def labels_of(obj: Json) -> Mapping[str, Any]:
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Json) -> Mapping[str, Any]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def index_of(pod: Json) -> int:
    index = str(labels_of(pod).get(COMPLETION_INDEX) or "")
    return int(index) if index.isdecimal() else 0


def label_of(pod: Json) -> str:
    """A short name for a pod: `node-0`, or the initializer's name."""
    labels = labels_of(pod)
    job = str(labels.get(REPLICATED_JOB) or name_of(pod))
    index = labels.get(COMPLETION_INDEX)
    return job if index is None or job.endswith("-initializer") else f"{job}-{index}"
