"""`trainwright explain`: for each field of each rendered object its value, its origin, and the values it replaced.

In: the files of `render`, and optionally the path of the fields to explain. Out: a tree for people, or JSON for
programs with one entry for each scalar. Every field has exactly one origin: a line of the runtime's file, a field of
the TrainJob, an override or patch with its manager, a plugin, or a default.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence

from trainwright.cli.failure import Failure
from trainwright.cli.files.documents import Document
from trainwright.cli.files.offline import Offline
from trainwright.cli.files.origins import Tree
from trainwright.cli.files.render import admitted_job, check_runtime, plan_of
from trainwright.pipeline.explanation import Explained, Field, PlacedOrigin, describe, explained, trace_defaults
from trainwright.pipeline.provenance import DEFAULT, OVERRIDE, PATCH, RUNTIME, TRAIN_JOB, Origin, Trace
from trainwright.schema.jsonobject import Json


def explain(
    *,
    files: Sequence[str],
    path: str | None = None,
    namespace: str | None = None,
    output: str = "tree",
    config: str | None = None,
    feature_gates: str | None = None,
) -> int:
    """Prints the origin of every field, or of those under `path`."""
    offline = Offline.of(files, namespace, config, feature_gates)
    if not offline.train_jobs:
        raise Failure(f"{', '.join(files)}: no TrainJob to explain")
    for document in offline.runtimes:
        check_runtime(offline, document)
    found = [item for document in offline.train_jobs for item in explain_job(offline, document)]
    chosen = [narrowed for item in found if (narrowed := _under(item, path))]
    if not chosen:
        titles = ", ".join(item.title for item in found)
        raise Failure(f"no rendered field at {path}; the objects are {titles}")
    if output == "json":
        sys.stdout.write(json.dumps([_as_json(item) for item in chosen], indent=2, ensure_ascii=False) + "\n")
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for item in chosen:
            sys.stdout.write(Tree(item.title, item.fields, item.removed).text(columns))
    return 0


def explain_job(offline: Offline, document: Document) -> Iterator[Explained]:
    """Builds one TrainJob with a trace and returns the origins of its objects' fields."""
    job = admitted_job(offline, document)
    assert job.spec is not None
    runtime = offline.find_runtime(job.spec.runtime_ref, job.metadata.namespace)
    assert runtime is not None  # admission has found it
    trace = Trace()
    trace_defaults(trace, runtime.value, offline.answer_runtime(runtime).value)
    plan = plan_of(offline, job, document, trace)
    sources = _Sources(document, runtime)
    yield from explained(plan, trace, sources.of, sources.job.name)


class _Sources:
    """Finds the file and line of an origin."""

    def __init__(self, job: Document, runtime: Document) -> None:
        self.job = job
        self.runtime = runtime

    def of(self, origin: Origin, inner: str = "") -> PlacedOrigin:
        """`inner` is the path of an item in a list that was set as a whole: the list is the origin, the item has the
        line.
        """
        if origin.layer == RUNTIME:
            return _in(self.runtime, origin, inner)
        if origin.layer in (TRAIN_JOB, OVERRIDE, PATCH):
            if not self.job.has(origin.field):  # the schema's default, or the namespace of the command line
                return PlacedOrigin(DEFAULT, self.job.kind, origin.field, "", 0)
            return _in(self.job, origin, inner)
        return PlacedOrigin(*origin, "", 0)


def _in(document: Document, origin: Origin, inner: str) -> PlacedOrigin:
    return PlacedOrigin(*origin, document.file, document.line(origin.field + inner))


def _under(item: Explained, path: str | None) -> Explained | None:
    """The part of an object that a path selects, such as `spec.suspend`, `JobSet/x` or `JobSet/x.spec.suspend`."""
    if not path:
        return item
    wanted, _, rest = path.partition(".") if "/" in path.split(".")[0].split("[")[0] else (item.title, "", path)
    if wanted != item.title:
        return None
    fields = [field for field in item.fields if _starts(field, rest)]
    removed = [field for field in item.removed if _starts(field, rest)]
    return Explained(item.title, fields, removed) if fields or removed else None


def _starts(field: Field, path: str) -> bool:
    return any(text == path or (text.startswith(path) and text[len(path)] in ".[") or not path for text in field[:2])


def _as_json(item: Explained) -> Json:
    return {
        "object": item.title,
        "fields": [_field_json(field) for field in item.fields],
        "removed": [_field_json(field) for field in item.removed],
    }


def _field_json(field: Field) -> Json:
    return {
        "path": field.path,
        "value": field.value,
        "origin": _source_json(field.origin),
        "lost": [{"value": value, "origin": _source_json(source)} for value, source in field.lost],
    }


def _source_json(source: PlacedOrigin) -> Json:
    entry: Json = {"layer": source.layer, "text": describe(source)}
    for key in ("name", "field", "file", "line"):
        if getattr(source, key):
            entry[key] = getattr(source, key)
    return entry
