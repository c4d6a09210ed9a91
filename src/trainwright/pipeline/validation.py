"""The rules that no schema can state: what a TrainJob and its runtime must agree on.

In: typed objects that have passed their schema. Out: a `Verdict`: faults in the reference's words and field paths, in
one fixed order, and warnings. The webhooks and `trainwright validate` share these functions; which runtime a TrainJob
means is for the caller to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwright.api.runtime import TorchPolicy, TrainingRuntime
from trainwright.api.trainjob import RuntimeRef, TrainJob
from trainwright.api.wellknown import WEBHOOK_VALIDATION
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.framework import Framework
from trainwright.pipeline.info import NUM_PROC_PER_NODE_ANNOTATION, make_info
from trainwright.pipeline.mutation import WORDS
from trainwright.pipeline.plan import Observed
from trainwright.pipeline.podset import ANCESTOR_LABEL, INITIALIZERS, NODE, TRAINER, pod_spec_of
from trainwright.pipeline.typed import containers_text, invalid_value, runtime_ref_text
from trainwright.schema.errors import OMITTED, ErrorType, FieldError, invalid
from trainwright.schema.jsonobject import Json

SUPPORT_LABEL = "trainer.kubeflow.org/support"
OPT_OUT_LABEL = WEBHOOK_VALIDATION
DEPRECATION_POLICY = (
    "is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation policy: "
    "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
)


class Verdict(NamedTuple):
    """Nothing in `errors` means admitted."""

    errors: list[FieldError]
    warnings: list[str]


def needs_runtime(job: TrainJob, old: TrainJob | None) -> bool:
    """Whether this request is judged by the runtime. An update that changes nothing the runtime has a say in, or
    that comes after the job's end, must go through though the runtime is gone.
    """
    if old is None:
        return True
    same = job.spec == old.spec and _annotation(job) == _annotation(old)
    return not (old.is_finished or job.is_being_deleted or same)


def validate_trainjob(
    job: TrainJob, runtime: TrainingRuntime, old: TrainJob | None, observed: Observed, framework: Framework
) -> Verdict:
    """Judge a TrainJob against its runtime; `old` is what it was before an update."""
    verdict = Verdict([], [])
    if runtime.is_cluster_scoped and runtime.metadata.label(SUPPORT_LABEL) == "deprecated":
        verdict.warnings.append(f'Referenced ClusterTrainingRuntime "{runtime.metadata.name}" {DEPRECATION_POLICY}')
    verdict.warnings.extend(_older_spellings(job))
    verdict.errors.extend(_annotation_faults(job, old))
    try:
        info = make_info(job, runtime, observed)
    except TemplateInvalid as error:
        reference = runtime_ref_text(job.spec.runtime_ref) if job.spec else "null"
        verdict.errors.append(invalid_value("spec.runtimeRef", reference, str(error)))
        return verdict
    verdict.warnings.extend(info.warnings)
    for finding in framework.validate(info, old):
        if isinstance(finding, str):
            verdict.warnings.append(finding)
        else:
            verdict.errors.append(finding)
    return verdict


def runtime_not_found(ref: RuntimeRef, cause: str = "") -> FieldError:
    """The runtime that a TrainJob names is not there. Its kinds spell the field differently, and clients know it."""
    if ref.kind == "TrainingRuntime":
        field, kind = "spec.runtimeRef", "trainingRuntime"
    else:
        field, kind = "spec.RuntimeRef", "clusterTrainingRuntime"
    cause = cause or f'{ref.kind}.{ref.api_group} "{ref.name}" not found'
    detail = f"{cause}: specified {kind} must be created before the TrainJob is created"
    return invalid_value(field, runtime_ref_text(ref), detail)


def validate_runtime(runtime: TrainingRuntime, *, is_update: bool = False) -> Verdict:
    """Judge a runtime by itself: each job with a role has one replica and the container of that role."""
    verdict = Verdict([], [])
    if runtime.metadata.label(OPT_OUT_LABEL) == "disabled":
        return verdict
    name = runtime.metadata.name
    if runtime.is_cluster_scoped and not is_update and runtime.metadata.label(SUPPORT_LABEL) == "deprecated":
        verdict.warnings.append(f'ClusterTrainingRuntime "{name}" {DEPRECATION_POLICY}')
    verdict.warnings.extend(_older_runtime_spellings(runtime))
    verdict.errors.extend(_elastic_faults(runtime))
    template = runtime.spec.template if runtime.spec else None
    jobs: list[Json] = ((template.spec if template else None) or {}).get("replicatedJobs") or []
    for index, job in enumerate(jobs):
        role = ((job["template"].get("metadata") or {}).get("labels") or {}).get(ANCESTOR_LABEL)
        if role != TRAINER and role not in INITIALIZERS:
            continue
        field = f"spec.template.spec.replicatedJobs[{index}]"
        if job.get("replicas", 1) != 1:
            verdict.errors.append(invalid(f"{field}.replicas", job["replicas"], "always must be 1"))
        containers = pod_spec_of(job).get("containers") or []
        wanted = NODE if role == TRAINER else role
        if not any(container.get("name") == wanted for container in containers):
            field = f"{field}.template.spec.template.spec.containers"
            detail = f"must contain the required container for the ancestor: {role}"
            verdict.errors.append(invalid_value(field, containers_text(containers), detail))
    return verdict


def _annotation(job: TrainJob) -> str | None:
    return job.metadata.annotation(NUM_PROC_PER_NODE_ANNOTATION)


def _annotation_faults(job: TrainJob, old: TrainJob | None) -> list[FieldError]:
    """The annotation stands for `spec.trainer.numProcPerNode` and keeps its rules."""
    value = _annotation(job)
    field = f"metadata.annotations[{NUM_PROC_PER_NODE_ANNOTATION}]"
    faults: list[FieldError] = []
    trainer = job.spec.trainer if job.spec else None
    if value is not None and value not in WORDS:
        faults.append(invalid(field, value, f"must be one of {', '.join(WORDS)}"))
    if value is not None and trainer is not None and trainer.num_proc_per_node is not None:
        faults.append(invalid(field, value, "must not stand beside spec.trainer.numProcPerNode"))
    before = _annotation(old) if old is not None and old.spec is not None and old.spec.trainer is not None else None
    if before is not None and value is not None and before != value:
        faults.append(FieldError(ErrorType.INVALID, field, OMITTED, "field is immutable"))
    return faults


def _older_spellings(job: TrainJob) -> list[str]:
    warnings = []
    if _annotation(job) is not None:
        warnings.append(
            "spec.trainer.numProcPerNode as a word is an older spelling and still works; the modern one is a number, "
            "or leaving it out, which means auto"
        )
    return warnings


def _older_runtime_spellings(runtime: TrainingRuntime) -> list[str]:
    warnings = []
    torch = _torch(runtime)
    if torch is not None and torch.num_proc_per_node is not None:
        warnings.append(
            "spec.mlPolicy.torch.numProcPerNode is an older spelling and still works; the modern one is "
            "spec.trainer.numProcPerNode of the TrainJob"
        )
    return warnings


def _elastic_faults(runtime: TrainingRuntime) -> Iterator[FieldError]:
    """The limits of an elastic runtime: at least one node, and no more than the most."""
    torch = _torch(runtime)
    policy = torch.elastic_policy if torch is not None else None
    if policy is None:
        return
    at = "spec.mlPolicy.torch.elasticPolicy"
    for name, value, least in (
        ("minNodes", policy.min_nodes, 1),
        ("maxNodes", policy.max_nodes, policy.min_nodes or 1),
        ("maxRestarts", policy.max_restarts, 0),
    ):
        if value is not None and value < least:
            yield invalid(f"{at}.{name}", value, f"must be at least {least}")


def _torch(runtime: TrainingRuntime) -> TorchPolicy | None:
    return runtime.spec.ml_policy.torch if runtime.spec and runtime.spec.ml_policy else None
