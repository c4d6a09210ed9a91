"""PlainJob: a one-node TrainJob labelled `example.com/plain-job: "true"` runs as a `batch/v1` Job, without JobSet.

Shows how a plugin runs a TrainJob as a kind of its own: it claims the workload, builds it, names its kind and reports
what became of it. Deadline, suspension, time to live and clean-up follow from the report. `role.yaml` beside this file
is what the operator must be allowed for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import JOBS
from trainwright.api.trainjob import JobStatus, TrainJob
from trainwright.pipeline import Apply, Watch, WorkloadStatus, end_of
from trainwright.pipeline.info import Info
from trainwright.pipeline.steps import copy_spec, set_steps
from trainwright.schema.errors import FieldError, invalid

LABEL = "example.com/plain-job"


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Spec(msgspec.Struct, frozen=True):
    suspend: bool | None = None


class Status(msgspec.Struct, frozen=True):
    active: int | None = None
    ready: int | None = None
    terminating: int | None = None
    conditions: list[Condition] | None = None


class Job(msgspec.Struct, frozen=True):
    """What `status` reads of a Job; the operator keeps no more of it in memory."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
    status: Status = Status()


class PlainJob:
    name = "PlainJob"

    def enforce_pod_spec(self, info: Info, job: TrainJob) -> None:
        if not self._runs(info, job):
            return
        info.claim_workload(self.name)  # the JobSet plugin leaves it to us
        for pod_set in info.pod_sets:
            pod = pod_set.pod_spec
            pod.setdefault("restartPolicy", "OnFailure")  # JobSet's default; a Job has none
            # Frameworks call the first node by the name that it has in a JobSet. With one node that is this very pod.
            pod["hostAliases"] = [{"ip": "127.0.0.1", "hostnames": [info.first_node]}]

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if info.workload_plugin != self.name:
            return
        for fault in self._faults(info):
            raise ValueError(str(fault))  # a TrainJob that never met our webhook
        spec = copy_spec(info)
        set_steps(info, spec)  # image, command, arguments and variables of the TrainJob
        [node] = spec["replicatedJobs"]
        labels = {**info.labels, **((node["template"].get("metadata") or {}).get("labels") or {})}
        yield Apply(
            {
                "apiVersion": JOBS.api_version,
                "kind": JOBS.kind,
                "metadata": {"name": info.name, "labels": labels, "annotations": dict(info.annotations)},
                "spec": {**node["template"]["spec"], "completionMode": "Indexed", "suspend": job.is_suspended},
            },
            workload=True,
        )

    def watches(self) -> Iterator[Watch]:
        yield Watch(JOBS, Job, workload=True)

    def status(self, job: TrainJob, workload: Job) -> WorkloadStatus:
        found, suspended = workload.status, bool(workload.spec.suspend)
        end = end_of(found.conditions, complete="Complete")
        node = JobStatus(
            "node",
            ready=min(found.ready or 0, 1),
            active=min(found.active or 0, 1),
            succeeded=int(end is not None and end.type == "Complete"),
            failed=int(end is not None and end.type == "Failed"),
            suspended=int(suspended),
        )
        at_rest = suspended and not found.active and not found.terminating
        return WorkloadStatus(end=end, jobs=[node], is_suspended=suspended, is_at_rest=at_rest)

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        if self._runs(info, job):
            yield from self._faults(info)

    def _runs(self, info: Info, job: TrainJob) -> bool:
        """Whether this TrainJob is ours. Once it has a workload that is settled, whatever becomes of the label."""
        workload = info.observed.workload
        return workload.plugin == self.name if workload else job.metadata.label(LABEL) == "true"

    def _faults(self, info: Info) -> Iterator[FieldError]:
        sentence = f'a TrainJob labelled {LABEL}: "true" runs as one Job'
        nodes = info.trainer_spec.num_nodes or (info.trainer.count if info.trainer else 0)
        if nodes > 1:
            yield invalid("spec.trainer.numNodes", nodes, f"must be 1: {sentence} of one node")
        others = [pod_set.name for pod_set in info.pod_sets if pod_set is not info.trainer]
        if others or info.trainer is None:
            detail = f"must name a runtime with a trainer and no other job: {sentence}"
            yield invalid("spec.runtimeRef.name", info.runtime.metadata.name, detail)


PLUGINS = [PlainJob]
