"""Where the pods of a v1 job go: which replicated job, which of its Jobs, which pod of that Job.

v1 makes one pod for each replica and numbers them by type. A JobSet makes Jobs of pods. Pods that have the same
template and restart policy become one Job with as many pods, so that a pod's completion index is its number. Workers
beside a master of another template become Jobs of one pod each: then JobSet's index over all Jobs is the rank.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.api.wellknown import COMPLETION_INDEX
from trainwright.conversion.findings import Refused
from trainwright.conversion.v1job import MPI, PYTORCH, TENSORFLOW, XGBOOST, Replica, V1Job
from trainwright.schema.jsonobject import Json

NODE, LAUNCHER = "node", "launcher"
GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"
MOST_REPLICATED_JOBS = 100


@dataclass(frozen=True, slots=True)
class Place:
    """One pod of the converted job."""

    replicated_job: str
    job: int
    pod: int


@dataclass(frozen=True, slots=True)
class Group:
    """One replicated job: `jobs` Jobs of `pods` pods each, all from the template of `replica`."""

    name: str
    replica: Replica
    jobs: int
    pods: int
    index: Json
    """The env source of a pod's number: its rank, or its number among its type."""

    @property
    def is_trainer(self) -> bool:
        """Whether a TrainJob's `spec.trainer` means this group: then its main container must be named `node`."""
        return self.name in (NODE, LAUNCHER)


@dataclass(frozen=True, slots=True)
class Layout:
    job: V1Job
    groups: tuple[Group, ...]
    places: dict[tuple[str, int], Place]
    """By type and index of the v1 pod."""

    @property
    def is_merged(self) -> bool:
        """Whether pods of several types share one replicated job."""
        return len(self.groups) < len(self.job.replicas)

    def host(self, type_name: str, index: int) -> str:
        place = self.places[type_name, index]
        return f"{self.job.name}-{place.replicated_job}-{place.job}-{place.pod}.{self.job.name}"


def main_container_name(job: V1Job, group: Group) -> str:
    """The name of a group's main container after the conversion."""
    return NODE if group.is_trainer else str(job.main_container(group.replica.pod_spec).get("name"))


def layout_of(job: V1Job, is_gang: bool = False) -> Layout:
    replicas = list(job.replicas.values())
    if job.kind is MPI:
        launcher, worker = job.replicas["Launcher"], job.replicas["Worker"]
        groups = (
            Group(NODE, worker, 1, worker.count, _by_completion()),
            Group(LAUNCHER, launcher, 1, 1, _by_completion()),
        )
        places = {("Worker", index): Place(NODE, 0, index) for index in range(worker.count)}
        return Layout(job, groups, places | {("Launcher", 0): Place(LAUNCHER, 0, 0)})
    if job.kind is not TENSORFLOW and all(_alike(replicas[0], other) for other in replicas):
        return _merged(job, replicas)
    if job.kind in (PYTORCH, XGBOOST):
        return _by_rank(job, replicas, is_gang)
    return _by_type(job, replicas)


def _alike(one: Replica, other: Replica) -> bool:
    return (one.template, one.restart_policy) == (other.template, other.restart_policy)


def _merged(job: V1Job, replicas: list[Replica]) -> Layout:
    ranked = [(replica.type, index) for replica in replicas for index in range(replica.count)]
    places = {each: Place(NODE, 0, rank) for rank, each in enumerate(ranked)}
    return Layout(job, (Group(NODE, replicas[0], 1, len(ranked), _by_completion()),), places)


def _by_rank(job: V1Job, replicas: list[Replica], is_gang: bool) -> Layout:
    """Every pod is a Job of its own; their order over all replicated jobs is the rank.

    A PodGroup counts replicated jobs and the pods of their Jobs, and not how many Jobs there are. So each pod of a gang
    is a replicated job, too.
    """
    index = _source(f"metadata.labels['{GLOBAL_INDEX}']")
    if not is_gang:
        groups = tuple(Group(each.role, each, each.count, 1, index) for each in replicas)
        places = {(each.type, number): Place(each.role, number, 0) for each in replicas for number in range(each.count)}
        return Layout(job, groups, places)
    if job.total > MOST_REPLICATED_JOBS:
        advice = f"a JobSet has at most {MOST_REPLICATED_JOBS} replicated jobs: give master and workers one template"
        raise Refused(
            [f"spec.{job.kind.field}: {job.total} pods are too many for a gang with several templates; {advice}"]
        )
    pods = [(each, number) for each in replicas for number in range(each.count)]
    groups = tuple(Group(_numbered(each, number), each, 1, 1, index) for each, number in pods)
    return Layout(job, groups, {(each.type, number): Place(_numbered(each, number), 0, 0) for each, number in pods})


def _numbered(replica: Replica, number: int) -> str:
    return replica.role if replica.count == 1 else f"{replica.role}-{number}"


def _by_type(job: V1Job, replicas: list[Replica]) -> Layout:
    groups = tuple(Group(each.role, each, 1, each.count, _by_completion()) for each in replicas)
    places = {(each.type, index): Place(each.role, 0, index) for each in replicas for index in range(each.count)}
    return Layout(job, groups, places)


def _by_completion() -> Json:
    return _source(f"metadata.annotations['{COMPLETION_INDEX}']")


def _source(path: str) -> Json:
    return {"fieldRef": {"fieldPath": path}}
