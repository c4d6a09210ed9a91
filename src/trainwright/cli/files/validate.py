"""`trainwright validate`: prints every reason for which an API server would refuse these files, without a cluster.

In: files, and optionally a merge patch that is validated as an update of the TrainJob; with `--local`, this machine too
(`here`). Out: for each document the
server's message, then each error with its file, line and a hint; warnings; a summary. Exit code 0 when everything is
admitted, 1 when anything is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from trainwright.api.schema import schema_for
from trainwright.cli.failure import Failure
from trainwright.cli.files.documents import Document, parse_file
from trainwright.cli.files.hints import hint, near_field
from trainwright.cli.files.offline import Offline, shipped_runtime_names
from trainwright.pipeline.admission import Answer
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import merge_patch


def validate(
    *,
    files: Sequence[str],
    patch: str | None = None,
    namespace: str | None = None,
    config: str | None = None,
    feature_gates: str | None = None,
    output: str = "text",
    local: bool = False,
) -> int:
    """Validates every document and prints the result."""
    offline = Offline.of(files, namespace, config, feature_gates)
    report = _Entries(offline) if output == "json" else partial(_report, offline)
    if not offline.runtimes and not offline.train_jobs:
        raise Failure(f"{', '.join(files)}: no TrainJob and no runtime to validate")
    refused = 0
    for document in offline.runtimes:
        refused += report(document, offline.answer_runtime(document))
    for document in offline.train_jobs:
        refused += report(document, offline.answer_train_job(document))
    if patch is not None and not refused:
        document = _one_job(offline)
        stored = offline.answer_train_job(document).value
        update = merge_patch(stored, _read_patch(patch))
        refused += report(document, offline.answer_train_job(document, update, stored), f" updated by {patch}")
    if local and not refused:
        refused += _refused_here(offline, report.entries if isinstance(report, _Entries) else None)
    if isinstance(report, _Entries):
        print(json.dumps({"refused": refused, "documents": report.entries}, indent=2, ensure_ascii=False))
        return 1 if refused else 0
    for document in offline.ignored:
        print(f"{document.file}: document {document.number}, {document.title}: not validated, it is of another API")
    count = len(offline.runtimes) + len(offline.train_jobs) + (patch is not None)
    print(f"{count} validated, {refused} refused" if refused else f"{count} validated, all admitted")
    return 1 if refused else 0


def _refused_here(offline: Offline, entries: list[Json] | None) -> int:
    """Says what cannot run on this machine. Returns how many TrainJobs that are."""
    from trainwright.cli.files import here
    from trainwright.cli.files.render import admitted_job, plan_of

    tier, capacity = here.this_machine()
    refused = 0
    for document in offline.train_jobs:
        plan = plan_of(offline, admitted_job(offline, document), document)
        reasons = here.why_not([intention.object for intention in plan.objects], tier, capacity)
        refused += bool(reasons)
        if entries is not None:
            entry = next(one for one in entries if (one["file"], one["document"]) == (document.file, document.number))
            entry["local"] = reasons
        elif reasons:
            print(f"{document.file}: document {document.number}, {document.title}: cannot run on this machine")
            print("\n".join(f"  - {reason}" for reason in reasons))
    return refused


class _Entries:
    """The results for programs: an entry for each document."""

    def __init__(self, offline: Offline) -> None:
        self._offline = offline
        self.entries: list[Json] = []

    def __call__(self, document: Document, answer: Answer, what: str = "") -> int:
        schema = schema_for(document.kind)
        errors = [
            {"field": path, "line": document.line(path), "message": "unknown field", "hint": near_field(schema, path)}
            for path in answer.unknown
        ]
        for error in {str(error): error for error in answer.errors}.values():
            advice = hint(error, partial(_runtime_names, self._offline))
            line = (
                document.line(error.field.replace("RuntimeRef", "runtimeRef")) if error.field else document.place.line
            )
            errors.append({"field": error.field, "line": line, "message": error.body, "hint": advice})
        is_refused = bool(answer.unknown or answer.messages)
        self.entries.append(
            {
                "file": document.file,
                "document": document.number,
                "object": f"{document.title}{what}",
                "admitted": not is_refused,
                "messages": [*_strict_message(document, answer.unknown), *answer.messages],
                "errors": errors,
                "warnings": [*answer.warnings, *(f'unknown field "{path}" is dropped' for path in answer.surviving)],
            }
        )
        return 1 if is_refused else 0


def _runtime_names(offline: Offline) -> list[str]:
    return [*(runtime.name for runtime in offline.runtimes), *shipped_runtime_names()]


def _one_job(offline: Offline) -> Document:
    if len(offline.train_jobs) != 1:
        raise Failure(f"--patch needs files with exactly one TrainJob, these have {len(offline.train_jobs)}", 2)
    return offline.train_jobs[0]


def _read_patch(file: str) -> Json:
    values = [value for value, _ in parse_file(file) if value is not None]
    if len(values) != 1 or not isinstance(values[0], dict):
        raise Failure(f"{file}: a merge patch is one mapping of the fields to change")
    return values[0]


def _report(offline: Offline, document: Document, answer: Answer, what: str = "") -> int:
    """Prints the result for one document. Returns 1 when it is refused."""
    title = f"{document.file}: document {document.number}, {document.title}{what}"
    unknown = _strict_message(document, answer.unknown)
    messages = [*unknown, *answer.messages]
    print(f"{title}: {'refused' if messages else 'admitted'}")
    for message in messages:
        print(f"  {message}")
    schema = schema_for(document.kind)
    for path in answer.unknown:
        print(f"  - {_where(document, path)}: unknown field\n    hint: {near_field(schema, path)}")
    for error in {str(error): error for error in answer.errors}.values():
        _print_error(offline, document, error)
    for path in answer.surviving:
        text = f'unknown field "{path}" is kept when rendering, but an API server drops it'
        print(f"  warning: {_where(document, path)}: {text}\n    hint: {near_field(schema, path)}")
    for text in answer.warnings:
        print(f"  warning: {document.file}:{document.place.line}: {text}")
    return 1 if messages else 0


def _strict_message(document: Document, unknown: Sequence[str]) -> list[str]:
    """The message of strict decoding, which kubectl asks for. Without it, a server drops unknown fields and warns."""
    if not unknown:
        return []
    fields = ", ".join(f'unknown field "{path}"' for path in unknown)
    kind = document.kind
    return [f'{kind} in version "v1alpha1" cannot be handled as a {kind}: strict decoding error: {fields}']


def _print_error(offline: Offline, document: Document, error: FieldError) -> None:
    print(f"  - {_where(document, error.field)}: {error.body}")
    if advice := hint(error, partial(_runtime_names, offline)):
        print(f"    hint: {advice}")


def _where(document: Document, field: str) -> str:
    """`file:line: field`. An error of the whole object has its first line."""
    if not field:
        return f"{document.file}:{document.place.line}"
    return f"{document.file}:{document.line(field.replace('RuntimeRef', 'runtimeRef'))}: {field}"
