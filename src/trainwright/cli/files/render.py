"""`trainwright render`: prints the objects that a cluster would get for a TrainJob, without a cluster.

In: files with TrainJobs and, unless they ship, their runtimes. Out: the child objects on standard output, with secrets
as `<generated>`; warnings on standard error. Files that an API server would refuse are refused with its message.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import TrainJob, trainjob_from
from trainwright.cli.console.output import to_json, to_yaml
from trainwright.cli.failure import Failure
from trainwright.cli.files.documents import Document
from trainwright.cli.files.offline import Offline
from trainwright.pipeline import MaskedKeys, PipelineError, Plan, build
from trainwright.pipeline.provenance import NO_TRACE, Tracer
from trainwright.schema.jsonobject import Json

UID = "<uid>"


def render(
    *,
    files: Sequence[str],
    namespace: str | None = None,
    output: str = "yaml",
    config: str | None = None,
    feature_gates: str | None = None,
) -> int:
    """Prints the objects of every TrainJob in the files."""
    offline = Offline.of(files, namespace, config, feature_gates)
    if not offline.train_jobs:
        raise Failure(f"{', '.join(files)}: no TrainJob to render")
    for document in offline.runtimes:
        check_runtime(offline, document)
    objects: list[Json] = []
    for document in offline.train_jobs:
        job = admitted_job(offline, document)
        if not job.is_ours:
            manager = job.spec.managed_by if job.spec else ""
            warn(document, "spec.managedBy", f"managed by {manager}: the operator leaves it alone and writes nothing")
            continue
        objects += [intention.object for intention in plan_of(offline, job, document).objects]
    sys.stdout.write(to_json(objects) if output == "json" else to_yaml(objects))
    return 0


def check_runtime(offline: Offline, document: Document) -> None:
    """Fails for a runtime that an API server would refuse; prints its warnings."""
    answer = offline.answer_runtime(document)
    if answer.messages:
        raise Failure(refusal(document, answer.messages))
    for path in answer.surviving:
        warn(document, path, f'unknown field "{path}" is kept; an API server would drop it')
    for path in answer.unknown:
        warn(document, path, f'unknown field "{path}"')
    for text in answer.warnings:
        warn(document, "", text)


def admitted_job(offline: Offline, document: Document) -> TrainJob:
    """The TrainJob as it would be stored."""
    answer = offline.answer_train_job(document)
    if answer.messages:
        raise Failure(refusal(document, answer.messages))
    for path in answer.unknown:
        warn(document, path, f'unknown field "{path}"')
    for text in answer.warnings:
        warn(document, "", text)
    job = trainjob_from(answer.value)
    if job.metadata.uid:
        return job
    return msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, uid=UID))


def plan_of(offline: Offline, job: TrainJob, document: Document, trace: Tracer = NO_TRACE) -> Plan:
    """The objects that the operator would write for this TrainJob into an empty cluster."""
    assert job.spec is not None
    runtime = offline.find_runtime(job.spec.runtime_ref, job.metadata.namespace)
    assert runtime is not None  # admission has found it
    try:
        typed = runtime_from(offline.answer_runtime(runtime).value)
        return build(job, typed, offline.observed, offline.framework, MaskedKeys(), trace)
    except PipelineError as error:
        raise Failure(f"{document.file}:{document.place.line}: {document.title}: {error}") from None


def warn(document: Document, field: str, text: str) -> None:
    line = document.line(field) if field else document.place.line
    print(f"warning: {document.file}:{line}: {document.title}: {text}", file=sys.stderr)


def refusal(document: Document, messages: Sequence[str]) -> str:
    return "\n".join(f"{document.file}:{document.place.line}: {document.title} is refused: {text}" for text in messages)
