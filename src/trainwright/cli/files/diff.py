"""`trainwright diff`: what applying files would change in the objects that a cluster gets.

Offline, against other files (`--against`); or live, against the TrainJobs and runtimes of the cluster. Both sides are
rendered by the same `build` as the operator's, so that only what a file says makes a difference. Exit code 0 when
nothing differs, 1 when something does, 2 and more for errors, as kubectl's.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator, Sequence

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from trainwright.api.trainjob import trainjob_from
from trainwright.cli.clusters.target import Target
from trainwright.cli.console.output import to_yaml
from trainwright.cli.console.terminal import Terminal
from trainwright.cli.failure import Failure
from trainwright.cli.files.configured import framework_of
from trainwright.cli.files.documents import Document, parse, read
from trainwright.cli.files.offline import RUNTIME_KINDS, TRAIN_JOB, Offline
from trainwright.cli.files.render import admitted_job, check_runtime, plan_of, refusal
from trainwright.schema.jsonobject import Json

Key = tuple[str, str, str]
Objects = dict[Key, Json]

DIFFERS = 1
ERROR = 2
OF_THE_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Metadata that no file says."""


def diff(
    files: Sequence[str],
    against: Sequence[str],
    config: str | None,
    feature_gates: str | None,
    quiet: bool,
    target: Target,
    namespace: str,
) -> int:
    refused: list[str] = []
    try:
        if against:
            old = _rendered(_offline(read(against), namespace, config, feature_gates))
            new = _rendered(_offline(read(files), namespace, config, feature_gates))
            sides = (" ".join(against), " ".join(files))
        else:
            from trainwright.cli.clusters.connection import carry_out

            documents = read(files)
            live = carry_out(_live(target, documents, namespace))
            old, new, refused = _live_and_new(documents, live, namespace, config, feature_gates)
            sides = ("cluster", " ".join(files))
    except Failure as failure:
        raise Failure(failure.message, max(failure.code, ERROR)) from failure
    differs = _print(old, new, sides, quiet=quiet)
    if refused:
        raise Failure("\n".join([*refused, "Create a new TrainJob with the change, or delete this one first"]), ERROR)
    return DIFFERS if differs else 0


def _offline(documents: Sequence[Document], namespace: str, config: str | None, feature_gates: str | None) -> Offline:
    return Offline(documents, namespace, framework_of(config, feature_gates))


def _rendered(offline: Offline) -> Objects:
    """The runtimes and TrainJobs of files, and what is rendered from them."""
    objects: Objects = {}
    for document in offline.runtimes:
        check_runtime(offline, document)
        _add(objects, offline.answer_runtime(document).value)
    for document in offline.train_jobs:
        job = admitted_job(offline, document)
        _add(objects, offline.answer_train_job(document).value)
        if job.is_ours:
            for intention in plan_of(offline, job, document).objects:
                _add(objects, intention.object)
    if not objects:
        raise Failure("no TrainJob and no runtime to compare")
    return objects


class _Live(dict[Key, Document]):
    """The TrainJobs and runtimes of a cluster."""

    def runtimes(self) -> list[Document]:
        return [document for (kind, _, _), document in self.items() if kind in RUNTIME_KINDS]


async def _live(target: Target, documents: Sequence[Document], namespace: str) -> _Live:
    """What the cluster has: its runtimes, and the TrainJobs that the files name."""
    found = _Live()
    spaces = {str((document.value.get("metadata") or {}).get("namespace") or namespace) for document in documents}
    async with target.client() as client:
        for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAIN_JOBS):
            for space in sorted(spaces) if resource.namespaced else [None]:
                for item in (await client.list(resource, space)).items or ():
                    value = {**item, "apiVersion": resource.api_version, "kind": resource.kind}
                    ((plain, place),) = parse(json.dumps(value).encode(), "cluster")
                    found[_key(value)] = Document("cluster", 1, plain, place)
    return found


def _live_and_new(
    documents: Sequence[Document], live: _Live, namespace: str, config: str | None, feature_gates: str | None
) -> tuple[Objects, Objects, list[str]]:
    """Both sides: as it is, and as it would be when the files are applied; and why a server would refuse that."""
    mine = {_key_in(document, namespace) for document in documents}
    others = [document for document in live.runtimes() if _key(document.value) not in mine]
    after = _offline([*documents, *others], namespace, config, feature_gates)
    before = _offline(live.runtimes(), namespace, config, feature_gates)
    old: Objects = {}
    new: Objects = {}
    refused: list[str] = []
    for document in after.runtimes:
        if document in others:
            continue
        check_runtime(after, document)
        _add(new, after.answer_runtime(document).value)
        if present := live.get(_key(document.value)):
            _add(old, present.value)
    for document in after.train_jobs:
        present = live.get(_key(document.value))
        if present is None:
            _add_rendered(new, after, document, after.answer_train_job(document).value)
            continue
        update = _applied(present.value, document.value)
        answer = after.answer_train_job(document, update, present.value)
        if answer.messages:
            refused.append(refusal(document, answer.messages))
        _add_rendered(old, before, present, present.value)
        _add_rendered(new, after, document, answer.value)
    if not new:
        raise Failure("no TrainJob and no runtime to compare")
    return old, new, refused


def _add_rendered(objects: Objects, offline: Offline, document: Document, value: Json) -> None:
    """Adds a TrainJob and what the operator builds for it."""
    job = trainjob_from(value) if "uid" in value["metadata"] else admitted_job(offline, document)
    _add(objects, value)
    if not job.is_ours or job.spec is None:
        return
    if offline.find_runtime(job.spec.runtime_ref, job.metadata.namespace) is None:
        raise Failure(f"TrainJob {document.name} names a runtime that is not there: {job.spec.runtime_ref.name}")
    for intention in plan_of(offline, job, document).objects:
        _add(objects, intention.object)


def _applied(present: Json, wanted: Json) -> Json:
    """The present object with what a file says, as an apply by its only author would leave it."""
    metadata = {**present["metadata"]}
    for field in ("labels", "annotations"):
        if given := (wanted.get("metadata") or {}).get(field):
            metadata[field] = {**(metadata.get(field) or {}), **given}
    return {**present, "metadata": metadata, "spec": wanted.get("spec") or {}}


def _key(value: Json) -> Key:
    metadata = value["metadata"]
    return value["kind"], str(metadata.get("namespace") or ""), str(metadata["name"])


def _key_in(document: Document, namespace: str) -> Key:
    kind, space, name = document.kind, (document.value.get("metadata") or {}).get("namespace"), document.name
    return kind, "" if kind == CLUSTER_TRAINING_RUNTIMES.kind else str(space or namespace), name


def _add(objects: Objects, value: Json) -> None:
    metadata = {key: item for key, item in value["metadata"].items() if key not in OF_THE_SERVER}
    plain = {key: item for key, item in value.items() if key != "status"} | {"metadata": metadata}
    if value["kind"] not in (TRAIN_JOB, *RUNTIME_KINDS):  # whose owner has another uid on each side
        metadata.pop("ownerReferences", None)
    objects[_key(value)] = plain


def _print(old: Objects, new: Objects, sides: tuple[str, str], *, quiet: bool) -> bool:
    """Prints what differs. Returns whether anything does."""
    terminal, differs = Terminal(), False
    for key in sorted(old.keys() | new.keys()):
        before, after = (to_yaml([side[key]]) if key in side else "" for side in (old, new))
        if before == after:
            continue
        differs = True
        if quiet:
            break
        for line in _lines(key, before, after, sides):
            terminal.change(line)
    sys.stdout.flush()
    return differs


def _lines(key: Key, before: str, after: str, sides: tuple[str, str]) -> Iterator[str]:
    title = f"{key[0]}/{key[2]}"
    names = (f"{title} ({sides[0]})" if before else "/dev/null", f"{title} ({sides[1]})" if after else "/dev/null")
    yield from difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
