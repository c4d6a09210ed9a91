"""TrainJob + runtime + what exists → the objects to write.

The one function that `render`, `explain`, the webhook's dry run and the reconciler share. Pure: same inputs, same
bytes (I9). Objects come out in the order they must be written: what pods mount before the pods, the JobSet last.
"""

from __future__ import annotations

from trainwright.api.metadata import controller_reference
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.runtime import TrainingRuntime
from trainwright.api.trainjob import RuntimeRef, TrainJob
from trainwright.pipeline.errors import NameTaken, RuntimeNotSupported, TemplateInvalid
from trainwright.pipeline.framework import Framework
from trainwright.pipeline.info import make_info
from trainwright.pipeline.plan import Intention, KeyMaterial, Observed, Plan
from trainwright.pipeline.provenance import NO_TRACE, TRAIN_JOB, Origin, Tracer
from trainwright.schema.jsonobject import Json

TRAINJOB_NAME_LABEL = "trainer.kubeflow.org/trainjob-name"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "trainwright"

_ORDER = {"ConfigMap": 0, "Secret": 1, "PodGroup": 3, "JobSet": 4}
_RUNTIMES = ("TrainingRuntime.trainer.kubeflow.org", "ClusterTrainingRuntime.trainer.kubeflow.org")


def runtime_kind(ref: RuntimeRef) -> str:
    """The kind of the runtime a TrainJob names; raises `RuntimeNotSupported` for any other kind."""
    key = f"{ref.kind}.{ref.api_group}" if ref.api_group else ref.kind
    if key not in _RUNTIMES:
        raise RuntimeNotSupported(key)
    return ref.kind


def build(
    job: TrainJob,
    runtime: TrainingRuntime,
    observed: Observed,
    framework: Framework,
    keys: KeyMaterial,
    trace: Tracer = NO_TRACE,
) -> Plan:
    """The plan for one TrainJob; raises `PipelineError`."""
    name = job.metadata.name
    if observed.jobset is not None and not observed.jobset.is_controlled_by(job.metadata.uid):
        raise NameTaken("JobSet", name)
    info = make_info(job, runtime, observed, keys, trace)
    if info.unmatched:
        raise TemplateInvalid("; ".join(info.unmatched))
    framework.prepare(info)
    built = sorted(framework.build(info), key=lambda item: _ORDER.get(item[1].object["kind"], 2))
    for _, intention in built:
        intention.object["metadata"]["namespace"] = job.metadata.namespace
    trace.mark(Origin(TRAIN_JOB, name, "metadata.namespace"))
    for _, intention in built:
        _own(intention, job)
    trace.mark(Origin(TRAIN_JOB, name, "metadata.name"))
    return Plan(
        objects=[intention for _, intention in built], built_by=[plugin for plugin, _ in built], warnings=info.warnings
    )


def _own(intention: Intention, job: TrainJob) -> None:
    metadata = intention.object["metadata"]
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        MANAGED_BY_LABEL: MANAGED_BY,
        TRAINJOB_NAME_LABEL: job.metadata.name,
    }
    metadata["ownerReferences"] = [owner_reference(job)]


def owner_reference(job: TrainJob) -> Json:
    """What makes an object this TrainJob's: the garbage collector follows the uid."""
    return controller_reference(TRAIN_JOBS, job.metadata)
