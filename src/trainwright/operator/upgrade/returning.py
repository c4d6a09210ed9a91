"""What Kubeflow Trainer (2.1 to 2.3) cannot go on with when a cluster goes back to it. Pure.

Found with the real ones: they apply a JobSet with the field manager that we use, so that what only ours has is taken
away, and JobSet refuses that while the JobSet runs. Then the TrainJob says Suspended and its pods run on.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import JOB_SETS
from trainwright.api.runtime import TrainingRuntime
from trainwright.api.trainjob import TrainJob
from trainwright.operator.upgrade.findings import Effect, Finding, name_of
from trainwright.pipeline import Workload
from trainwright.pipeline.workload import LIFETIME_ANNOTATION, WORKLOAD_ANNOTATION


def of_job(job: TrainJob, workload: Workload | None, runtime: TrainingRuntime | None) -> Iterator[Finding]:
    """About one unfinished TrainJob."""
    name = name_of("TrainJob", job.metadata.namespace, job.metadata.name)
    if job.spec is not None and job.spec.pod_template_overrides:
        yield Finding(
            name,
            Effect.BREAKS,
            "spec.podTemplateOverrides is gone with the CRDs of Kubeflow Trainer 2.2 and later, and so is what it says"
            " of the pods when the job is next resumed; write it as spec.runtimePatches first",
        )
    if workload is None or workload.metadata.annotation(WORKLOAD_ANNOTATION) is None:
        return
    if workload.resource != JOB_SETS:
        yield Finding(
            name,
            Effect.BREAKS,
            f"it runs as a {workload.resource.kind} that plugin {workload.plugin} built, which Kubeflow Trainer does"
            " not know: it would start a JobSet beside it. Let it end first",
        )
        return
    policy = runtime.spec.ml_policy if runtime is not None and runtime.spec is not None else None
    if policy is not None and policy.mpi is not None and not workload.status.is_suspended:
        yield Finding(
            name,
            Effect.BREAKS,
            "it runs on there, but cannot be suspended: its pods have variables for Open MPI 5 that Kubeflow Trainer"
            " would take away, which JobSet refuses; the TrainJob then says Suspended and its pods run on. Let it end,"
            " or suspend it before you go back",
        )
    if workload.status.node_range is not None:
        yield Finding(name, Effect.CHANGES, "it is elastic; nobody follows spec.trainer.numNodes there")


def of_ended(job: TrainJob, workload: Workload | None) -> Iterator[Finding]:
    """About one finished TrainJob."""
    if workload is not None and workload.metadata.annotation(LIFETIME_ANNOTATION) is not None:
        yield Finding(
            name_of("TrainJob", job.metadata.namespace, job.metadata.name),
            Effect.STAYS,
            f"its {workload.resource.kind} stays after its time to live, which only Trainwright sees to; delete it"
            " yourself, or with the TrainJob",
        )
