"""JobSet: the object that runs the pods, unless another plugin claims the workload.

Gives each pod its host name, turns the template into the JobSet, and reports what became of it. A JobSet that
Kubeflow Trainer made is reported like one of ours, which is why all JobSets are watched, not only labelled ones.

An elastic job is scaled through its JobSet where JobSet lets it be changed (its feature gate ElasticJobSet), else by
the Job of its nodes: JobSet v0.12 with the gate off makes Jobs from its template and leaves running ones alone.

The operator's role needs, in `jobset.x-k8s.io`: create, delete, get, list, patch and watch of `jobsets`. The operator's
role needs, in `batch`: list, patch and watch of `jobs`. It sees those of elastic jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trainwright.api.metadata import Condition, ObjectMeta
from trainwright.api.resources import JOB_SETS, JOBS
from trainwright.api.trainjob import JobStatus, TrainJob
from trainwright.api.wellknown import ELASTIC, JOBSET_NAME, REPLICATED_JOB
from trainwright.pipeline.coverage import covers
from trainwright.pipeline.elasticity import NodeRange, Nodes, Resize
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply
from trainwright.pipeline.podset import DATASET_INITIALIZER, MODEL_INITIALIZER, PodSet
from trainwright.pipeline.provenance import PLUGIN, Origin
from trainwright.pipeline.steps import copy_spec, set_steps
from trainwright.pipeline.typed import invalid_value, runtime_ref_text
from trainwright.pipeline.workload import LIFETIME_ANNOTATION, Watch, WorkloadStatus, end_of
from trainwright.plugins.jobset.override_rules import validate_overrides
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

INITIALIZER_VOLUME = "initializer"
IMMUTABLE = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")
"""What JobSet lets nobody change, besides the replicatedJobs. Its webhook fills in defaults when a JobSet is created
and never again, so that an update without them is a change where a list is written as a whole.
"""


class VolumeClaimPolicy(msgspec.Struct, frozen=True, gc=False):
    """That there is one is all that is read."""


class JobSetSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    suspend: bool | None = None
    ttl_seconds_after_finished: int | None = None
    volume_claim_policies: list[VolumeClaimPolicy] | None = None


class JobSetStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    conditions: list[Condition] | None = None
    replicated_jobs_status: list[JobStatus] | None = None
    restarts: int = 0


class StoredJobSet(msgspec.Struct, frozen=True, gc=False):
    """What a status is read from; decodes from the object as the API server sends it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class JobSpec(msgspec.Struct, frozen=True, gc=False):
    parallelism: int | None = None


class JobCounts(msgspec.Struct, frozen=True, gc=False):
    active: int | None = None
    ready: int | None = None


class StoredJob(msgspec.Struct, frozen=True, gc=False):
    """The Job of an elastic job's nodes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobCounts = JobCounts()


class Endpoints:
    """The host names of a pod set, made one by one as they are asked for."""

    def __init__(self, info: Info, pod_set: PodSet) -> None:
        self._stem = f"{info.name}-{pod_set.name}"
        self._subdomain = (info.spec.get("network") or {}).get("subdomain") or info.name
        self._pod_set = pod_set

    def __iter__(self) -> Iterator[str]:
        for replica in range(self._pod_set.replicas):
            for pod in range(self._pod_set.count):
                yield f"{self._stem}-{replica}-{pod}.{self._subdomain}"


class JobSet:
    """The JobSet of a TrainJob."""

    name = "JobSet"

    def sync_template(self, info: Info, job: TrainJob) -> None:
        for pod_set in info.pod_sets:
            pod_set.endpoints = Endpoints(info, pod_set)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if info.workload_plugin not in (None, self.name):
            return
        spec = copy_spec(info)
        jobset: Json = {"apiVersion": JOB_SETS.api_version, "kind": JOB_SETS.kind, "metadata": {}, "spec": spec}
        metadata: Json = jobset["metadata"]
        if info.labels:
            metadata["labels"] = dict(info.labels)
        if info.annotations:
            metadata["annotations"] = dict(info.annotations)
        info.trace.follow(jobset)
        if info.node_range is not None:
            metadata.setdefault("annotations", {})[ELASTIC] = str(info.node_range)
        if (seconds := spec.pop("ttlSecondsAfterFinished", None)) is not None:
            metadata.setdefault("annotations", {})[LIFETIME_ANNOTATION] = str(seconds)
        info.trace.mark(Origin(PLUGIN, self.name, "build"))
        metadata["name"] = info.name
        info.came_from("metadata.name")
        set_steps(info, spec)
        _keep_immutable(info, spec)
        spec.pop("suspend", None)
        if info.job_spec.suspend is not None:
            spec["suspend"] = info.job_spec.suspend
            info.came_from("spec.suspend")
        yield Apply(jobset, workload=True)

    def watches(self) -> Iterator[Watch]:
        yield Watch(JOB_SETS, StoredJobSet, workload=True, label_selector="")
        yield Watch(JOBS, StoredJob, label_selector=f"{ELASTIC}=true", part_of=JOBSET_NAME)

    def status(self, job: TrainJob, workload: StoredJobSet) -> WorkloadStatus:
        jobs = workload.status.replicated_jobs_status or []
        suspended = bool(workload.spec.suspend)
        return WorkloadStatus(
            end=end_of(workload.status.conditions, complete="Completed"),
            jobs=jobs,
            is_suspended=suspended,
            is_at_rest=suspended and not any(item.active or item.ready for item in jobs),
            owns_claims=bool(workload.spec.volume_claim_policies),
            mend=_lifetime_taken_over(workload.spec.ttl_seconds_after_finished),
            halt={"spec": {"suspend": True}},
            restarts=workload.status.restarts,
            pods=f"{JOBSET_NAME}={workload.metadata.name}",
            node_range=NodeRange.parse(workload.metadata.annotation(ELASTIC)),
            node_pods=f"{JOBSET_NAME}={workload.metadata.name},{ELASTIC}=true",
        )

    def nodes(self, part: StoredJob) -> Nodes:
        wanted = part.spec.parallelism
        return Nodes(1 if wanted is None else wanted, part.status.active or 0, part.status.ready or 0)

    def resize(self, workload: Json, parts: Sequence[StoredJob], nodes: int) -> Iterator[Resize]:
        """The JobSet, where its template has another number; else, or where JobSet refuses, the Jobs."""
        names = {part.metadata.label(REPLICATED_JOB) for part in parts}
        operations: list[Json] = []
        for index, item in enumerate((workload.get("spec") or {}).get("replicatedJobs") or ()):
            if item.get("name") in names and PodSet(item).count != nodes:
                operations += _count_at(f"/spec/replicatedJobs/{index}/template/spec", nodes)
        if operations:
            uid = {"op": "test", "path": "/metadata/uid", "value": workload["metadata"]["uid"]}
            yield Resize(JOB_SETS, str(workload["metadata"]["name"]), [uid, *operations])
        jobs = [part for part in parts if self.nodes(part).wanted != nodes]
        for part in jobs[:1]:
            uid = {"op": "test", "path": "/metadata/uid", "value": part.metadata.uid}
            yield Resize(JOBS, part.metadata.name, [uid, *_count_at("/spec", nodes)])

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError | str]:
        initializer = info.job_spec.initializer
        if initializer is not None and initializer.dataset is not None:
            yield from _initializer_faults(info, DATASET_INITIALIZER, "datasetConfig")
        if initializer is not None and initializer.model is not None:
            yield from _initializer_faults(info, MODEL_INITIALIZER, "modelConfig")
        yield from validate_overrides(info, job, old)


def _count_at(path: str, nodes: int) -> list[Json]:
    return [{"op": "add", "path": f"{path}/{field}", "value": nodes} for field in ("parallelism", "completions")]


def _lifetime_taken_over(seconds: int | None) -> Json | None:
    """The patch for a JobSet that would remove itself, as those of Kubeflow Trainer may."""
    if seconds is None:
        return None
    return {
        "metadata": {"annotations": {LIFETIME_ANNOTATION: str(seconds)}},
        "spec": {"ttlSecondsAfterFinished": None},
    }


def _keep_immutable(info: Info, spec: Json) -> None:
    """Send what JobSet holds immutable as JobSet stored it, where that is what the build wants and defaults."""
    workload = info.observed.workload
    stored = (workload.stored.get("spec") or {}) if workload is not None and workload.stored is not None else {}
    for field in IMMUTABLE:
        if field in spec and field in stored and covers(stored[field], _without_empty(spec[field])):
            spec[field] = stored[field]


def _without_empty(value: Any) -> Any:
    """What somebody chose: empty text, and objects with nothing in them, are for JobSet to fill in."""
    if isinstance(value, dict):
        members = ((name, _without_empty(member)) for name, member in value.items())
        return {name: member for name, member in members if member not in (None, "", {}, [])}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _initializer_faults(info: Info, name: str, config: str) -> Iterator[FieldError]:
    """A TrainJob that fetches something needs a runtime that has where to fetch it."""
    reference = runtime_ref_text(info.job_spec.runtime_ref)
    pod_set = info.pod_set(name)
    if pod_set is None:
        detail = f"must have {name} job when trainJob is configured with input {config}"
        yield invalid_value("spec.runtimeRef", reference, detail)
    elif pod_set.any_container(name) is None:
        detail = f"must have container with name - {name} in the {name} job"
        yield invalid_value("spec.runtimeRef", reference, detail)
    else:
        container = pod_set.container(name)
        mounts = container.volume_mounts if container is not None else []
        if not any(mount.get("name") == INITIALIZER_VOLUME for mount in mounts):
            detail = f"must have volumeMount with name - {INITIALIZER_VOLUME} in container {name} of the {name} job"
            yield invalid_value("spec.runtimeRef", reference, detail)
