"""`trainwright validate`: prints every reason for which an API server would refuse these files, without a cluster.

In: files, and optionally a merge patch that is validated as an update of the TrainJob. Out: for each document the
server's message, then each error with its file, line and a hint; warnings; a summary. Exit code 0 when everything is
admitted, 1 when anything is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainwright.api.schema import schema_for
from trainwright.cli.documents import Document, parse_file
from trainwright.cli.failure import Failure
from trainwright.cli.hints import hint, near_field
from trainwright.cli.offline import Offline, shipped_runtime_names
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
) -> int:
    """Validates every document and prints the result."""
    offline = Offline.of(files, namespace, config, feature_gates)
    if not offline.runtimes and not offline.train_jobs:
        raise Failure(f"{', '.join(files)}: no TrainJob and no runtime to validate")
    refused = 0
    for document in offline.runtimes:
        refused += _report(offline, document, offline.answer_runtime(document))
    for document in offline.train_jobs:
        refused += _report(offline, document, offline.answer_train_job(document))
    if patch is not None and not refused:
        document = _one_job(offline)
        stored = offline.answer_train_job(document).value
        update = merge_patch(stored, _read_patch(patch))
        refused += _report(
            offline, document, offline.answer_train_job(document, update, stored), f" updated by {patch}"
        )
    for document in offline.ignored:
        print(f"{document.file}: document {document.number}, {document.title}: not validated, it is of another API")
    count = len(offline.runtimes) + len(offline.train_jobs) + (patch is not None)
    print(f"{count} validated, {refused} refused" if refused else f"{count} validated, all admitted")
    return 1 if refused else 0


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

    def runtime_names() -> list[str]:
        return [*(runtime.name for runtime in offline.runtimes), *shipped_runtime_names()]

    if advice := hint(error, runtime_names):
        print(f"    hint: {advice}")


def _where(document: Document, field: str) -> str:
    """`file:line: field`. An error of the whole object has its first line."""
    if not field:
        return f"{document.file}:{document.place.line}"
    return f"{document.file}:{document.line(field.replace('RuntimeRef', 'runtimeRef'))}: {field}"
