"""What an API server with our webhooks answers to an object.

`runtime_needed` and `judge` are the validating webhook's flow for a TrainJob; the operator calls them with what it
found in the cluster. `admit_trainjob` and `admit_runtime` play the whole API server offline, in its order: unknown
fields, defaults, the mutating webhook, schema and rules, the validating webhook. Where a server stops at the first
stage that refuses, these go on as long as the object can be read at all, so that a user sees every fault at once;
`Answer.messages` still holds each stage's message as the server would word it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.trainjob import RuntimeRef, TrainJob, trainjob_from
from trainwright.pipeline.build import runtime_kind
from trainwright.pipeline.errors import PipelineError, RuntimeNotSupported
from trainwright.pipeline.framework import Framework
from trainwright.pipeline.mutation import PATCHES_KEPT, loses_patches, mutate
from trainwright.pipeline.plan import Observed
from trainwright.pipeline.validation import (
    Verdict,
    needs_runtime,
    runtime_not_found,
    validate_runtime,
    validate_trainjob,
)
from trainwright.schema.custom_resource import check_create, check_update
from trainwright.schema.errors import ErrorType, FieldError, aggregate, invalid
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults
from trainwright.schema.structural import StructuralSchema

_UNREADABLE = {ErrorType.REQUIRED, ErrorType.TYPE_INVALID}


class Answer(NamedTuple):
    """How one object fares. Without messages it is admitted, and `value` is what would be stored."""

    value: Json
    unknown: list[str]
    """Fields outside templates that the schema does not know; they are gone from `value`."""
    surviving: list[str]
    """Fields inside templates that the schema does not know; they are still in `value`."""
    errors: list[FieldError]
    messages: list[str]
    warnings: list[str]


class Found(NamedTuple):
    """What a judgement needs besides the TrainJob."""

    runtime: TrainingRuntime | None
    """The runtime to judge by; None when there is none."""
    cause: str = ""
    """Why there is none, in the API server's words."""
    observed: Observed = Observed()


def runtime_needed(job: TrainJob, old: TrainJob | None) -> RuntimeRef | None:
    """The runtime that a TrainJob is judged by, for the caller to find; None when it is admitted without one.

    Raises `RuntimeNotSupported`.
    """
    if job.spec is None:
        raise RuntimeNotSupported("")
    runtime_kind(job.spec.runtime_ref)
    return job.spec.runtime_ref if needs_runtime(job, old) else None


def needs_priority_classes(runtime: TrainingRuntime) -> bool:
    """Whether a TrainJob of this runtime is judged by the PriorityClasses there are."""
    gang = runtime.spec.pod_group_policy if runtime.spec else None
    return gang is not None and gang.volcano is not None


def judge(job: TrainJob, old: TrainJob | None, found: Found | None, framework: Framework) -> Verdict:
    """The validating webhook's verdict. `found` is None where `runtime_needed` asked for nothing.

    Raises `PipelineError`, whose text is a refusal too.
    """
    if found is None or job.spec is None:
        return Verdict([], [])
    if found.runtime is None:
        return Verdict([runtime_not_found(job.spec.runtime_ref, found.cause)], [])
    return validate_trainjob(job, found.runtime, old, found.observed, framework)


class Lookup(NamedTuple):
    """What the rules may ask for."""

    runtime: Callable[[RuntimeRef, str], TrainingRuntime | None]
    """The runtime of a reference, from the TrainJob's namespace where it is namespaced."""
    observed: Observed


def admit_runtime(value: Json, schema: StructuralSchema) -> Answer:
    """Judge a TrainingRuntime or ClusterTrainingRuntime."""
    template = (value.get("spec") or {}).get("template") if isinstance(value.get("spec"), dict) else None
    pruned = _copy(value)
    unknown = schema.prune(pruned)
    schema.default(pruned)
    errors = _schema_errors(pruned, None, schema)
    kept = pruned
    surviving = [path for path in unknown if path.startswith("spec.template.")]
    if surviving and template is not None:
        kept = _copy({**pruned, "spec": {**pruned["spec"], "template": template}})
        schema.default(kept)
    outside = [path for path in unknown if path not in surviving]
    answer = Answer(kept, outside, surviving, errors, _invalid(value, errors), [])
    if _is_readable(errors):
        verdict = validate_runtime(runtime_from(kept))
        _add(answer, value, verdict)
    return answer


def admit_trainjob(
    value: Json, old: Json | None, schema: StructuralSchema, lookup: Lookup, framework: Framework, now: str
) -> Answer:
    """Judge a TrainJob: created, or updated from `old`."""
    pruned = _copy(value)
    unknown = schema.prune(pruned)
    schema.default(pruned)
    warnings = [PATCHES_KEPT] if loses_patches(pruned, old) else []
    pruned = mutate(pruned, old, now)
    errors = _schema_errors(pruned, old, schema)
    answer = Answer(pruned, unknown, [], errors, _invalid(value, errors), warnings)
    if not _is_readable(errors):
        return answer
    try:
        job = trainjob_from(pruned)
        before = trainjob_from(old) if old is not None else None
    except msgspec.ValidationError as error:
        answer.messages.append(str(error))
        return answer
    try:
        ref = runtime_needed(job, before)
        runtime = lookup.runtime(ref, job.metadata.namespace) if ref is not None else None
        found = Found(runtime, observed=lookup.observed) if ref is not None else None
        _add(answer, value, judge(job, before, found, framework))
    except PipelineError as error:
        answer.messages.append(denied("TrainJob", str(error)))
    return answer


def denied(kind: str, reason: str) -> str:
    """What a client reads when the validating webhook refuses."""
    return f'admission webhook "validator.{kind.lower()}.trainer.kubeflow.org" denied the request: {reason}'


def _invalid(value: Json, errors: list[FieldError]) -> list[str]:
    if not errors:
        return []
    name = (value.get("metadata") or {}).get("name", "")
    return [f'{value["kind"]}.trainer.kubeflow.org "{name}" is invalid: {aggregate(errors)}']


def _add(answer: Answer, value: Json, verdict: Verdict) -> None:
    answer.warnings.extend(verdict.warnings)
    if verdict.errors:
        answer.errors.extend(verdict.errors)
        answer.messages.append(denied(value["kind"], aggregate(verdict.errors)))


def _schema_errors(value: Json, old: Json | None, schema: StructuralSchema) -> list[FieldError]:
    name = str((value.get("metadata") or {}).get("name") or "")
    faults = [invalid("metadata.name", name, fault) for fault in dns1123_subdomain_faults(name)]
    return check_create(schema, value, faults) if old is None else check_update(schema, value, old, faults)


def _is_readable(errors: list[FieldError]) -> bool:
    return not any(error.type in _UNREADABLE for error in errors)


def _copy(value: Json) -> Json:
    copied: Json = msgspec.json.decode(msgspec.json.encode(value))
    return copied
