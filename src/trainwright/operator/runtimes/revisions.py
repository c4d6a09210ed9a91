"""The runtime as it was when a TrainJob first met it: created once, shared, never changed.

One `ControllerRevision` stands for one content of one runtime in one namespace; its name ends in a hash of that
content, so two operators, or a thousand TrainJobs, all arrive at the same object. A TrainJob is bound to a revision
by the annotation of its workload, which its status repeats; until then it takes the runtime as it is now.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    TRAINING_RUNTIMES,
)
from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.trainjob import RuntimeRef, TrainJob
from trainwright.api.wellknown import RUNTIME_REVISION
from trainwright.client import AlreadyExists, Client, NotFound
from trainwright.controlloop import Key, OwnWrites
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.stores.views import (
    LAST_APPLIED,
    RUNTIME_LABEL,
    StoredRuntime,
    Views,
    runtime_label,
    thin_partial,
)
from trainwright.pipeline import PipelineError, RuntimeNotFound, RuntimeNotSupported, Workload, runtime_kind
from trainwright.pipeline.ownership import MANAGED_BY, MANAGED_BY_LABEL
from trainwright.schema.jsonobject import Json

TTL_ANNOTATION = "trainer.kubeflow.org/ttl-seconds-after-finished"
HASH_LENGTH = 16
REMEMBERED = 512


class Revision(msgspec.Struct, frozen=True):
    """A runtime with the name of the revision that keeps it; no name when a snapshot of the reference keeps it."""

    name: str
    runtime: TrainingRuntime


class RevisionUnusable(PipelineError):
    """The object that should hold the runtime does not."""


class _Stored(msgspec.Struct):
    metadata: ObjectMeta
    data: Json | None = None


class _Snapshot(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class _Read(msgspec.Struct, frozen=True):
    """A runtime as it is now, read once for each of its versions."""

    name: str
    """The name that a revision of it has."""
    content: Json
    runtime: TrainingRuntime


class Revisions:
    """Runtimes are read from the stores; the API server is asked only for one that they do not have."""

    def __init__(self, client: Client, views: Views) -> None:
        self._client = client
        self._views = views
        self._known: OrderedDict[tuple[str, str], TrainingRuntime] = OrderedDict()  # immutable, so safe to remember
        self._revisions = OwnWrites(views.revisions)
        self._creating = asyncio.Lock()
        self._read: OrderedDict[tuple[str, str], _Read] = OrderedDict()  # by uid and version: immutable too

    async def ensure(self, job: TrainJob, workload: Workload | None) -> Revision:
        """The revision that `job` is bound to, or, for a job that has none, a revision of the runtime as it is now."""
        assert job.spec is not None
        return await self._bound_to(job, workload) or await self._of_present_runtime(
            job.metadata.namespace, job.spec.runtime_ref
        )

    async def read(self, job: TrainJob, workload: Workload | None) -> Revision:
        """The same, and writes nothing."""
        if job.spec is None:
            raise RuntimeNotSupported("")
        bound = await self._bound_to(job, workload)
        if bound is not None:
            return bound
        present = await self._present(job.metadata.namespace, job.spec.runtime_ref)
        return Revision(present.name, present.runtime)

    async def _bound_to(self, job: TrainJob, workload: Workload | None) -> Revision | None:
        assert job.spec is not None
        ref = job.spec.runtime_ref
        runtime_kind(ref)  # raises RuntimeNotSupported
        name = revision_of(job, workload)
        if name:
            bound = await self._bound(job.metadata.namespace, name, ref)
            if bound is not None:
                return Revision(name, bound)
        elif workload is not None:
            snapshot = await self._snapshot(job)
            if snapshot is not None:
                return Revision("", snapshot)
        return None

    async def read_bound(self, job: TrainJob, workload: Workload | None) -> TrainingRuntime | None:
        """The runtime that the job is bound to, if it is bound and the revision is there. Writes nothing."""
        name = revision_of(job, workload)
        if not name or job.spec is None:
            return None
        return await self._bound(job.metadata.namespace, name, job.spec.runtime_ref)

    async def present_runtime(self, namespace: str, ref: RuntimeRef) -> TrainingRuntime:
        """The runtime as it is now; `RuntimeNotFound` when it is not there."""
        return (await self._present(namespace, ref)).runtime

    async def _present(self, namespace: str, ref: RuntimeRef) -> _Read:
        stored = self._views.runtime(ref, namespace) or await self._get(namespace, ref)
        version = stored.metadata.uid, stored.metadata.resource_version
        found = self._read.get(version)
        if found is None:
            content = content_of(_json_of(ref.kind, stored))
            found = _Read(name_of(content), content, runtime_from(content))
            self._read[version] = found
        _keep_newest(self._read, version)
        return found

    async def _get(self, namespace: str, ref: RuntimeRef) -> StoredRuntime:
        try:
            if ref.kind == TRAINING_RUNTIMES.kind:
                return await self._client.get(TRAINING_RUNTIMES, ref.name, namespace, decode=StoredRuntime)
            return await self._client.get(CLUSTER_TRAINING_RUNTIMES, ref.name, decode=StoredRuntime)
        except NotFound as error:
            if error.is_missing_type:
                raise
            raise RuntimeNotFound(ref.kind, ref.name) from error

    async def _of_present_runtime(self, namespace: str, ref: RuntimeRef) -> Revision:
        present = await self._present(namespace, ref)
        key = Key(namespace, present.name)
        if self._revisions.get(key) is None:
            async with self._creating:  # a burst of jobs needs one revision, not one each
                if self._revisions.get(key) is None:
                    await self._create(namespace, present.name, present.content)
        self._remember(namespace, present.name, present.runtime)
        return Revision(present.name, present.runtime)

    async def _create(self, namespace: str, name: str, content: Json) -> None:
        body: Json = {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {
                    MANAGED_BY_LABEL: MANAGED_BY,
                    RUNTIME_LABEL: runtime_label(content["kind"], content["metadata"]["name"]),
                },
            },
            "revision": 1,
            "data": content,
        }
        if lives := (content["metadata"].get("annotations") or {}).get(TTL_ANNOTATION):
            body["metadata"]["annotations"] = {TTL_ANNOTATION: lives}  # read from the store, without its content
        try:
            created = await self._client.create(
                CONTROLLER_REVISIONS, body, namespace, field_manager=FIELD_MANAGER, decode=PartialObjectMetadata
            )
            self._revisions.remember(thin_partial(created))
        except AlreadyExists:
            found = await self._client.get(CONTROLLER_REVISIONS, name, namespace, decode=_Stored)
            if found.data is None or name_of(found.data) != name:
                raise RevisionUnusable(
                    f'ControllerRevision "{name}" exists already and does not hold the runtime that its name'
                    " stands for; delete it"
                ) from None

    async def _bound(self, namespace: str, name: str, ref: RuntimeRef) -> TrainingRuntime | None:
        known = self._known.get((namespace, name))
        if known is not None:
            self._known.move_to_end((namespace, name))
            return known
        try:
            found = await self._client.get(CONTROLLER_REVISIONS, name, namespace, decode=_Stored)
        except NotFound:
            return None  # removed by hand: the runtime as it is now has to do
        if found.data is None or name_of(found.data) != name:
            raise RevisionUnusable(f'ControllerRevision "{name}" does not hold the runtime that its name stands for')
        runtime = runtime_from(found.data)
        if (runtime.kind, runtime.metadata.name) != (ref.kind, ref.name):
            raise RevisionUnusable(f'ControllerRevision "{name}" is of another runtime than the TrainJob names')
        self._remember(namespace, name, runtime)
        return runtime

    async def _snapshot(self, job: TrainJob) -> TrainingRuntime | None:
        """What Kubeflow Trainer left for a TrainJob that it started."""
        assert job.spec is not None
        name = f"{job.metadata.name}-runtime-snapshot"
        try:
            found = await self._client.get(CONFIG_MAPS, name, job.metadata.namespace, decode=_Snapshot)
        except NotFound:
            return None
        if not found.metadata.is_controlled_by(job.metadata.uid):
            return None
        import yaml  # only for jobs that another operator started

        try:
            runtime = runtime_from(yaml.safe_load((found.data or {})["runtime"]))
        except (KeyError, yaml.YAMLError, msgspec.ValidationError) as error:
            raise RevisionUnusable(f'ConfigMap "{name}" does not hold a runtime: {error}') from error
        ref = job.spec.runtime_ref
        if (runtime.kind, runtime.metadata.name) != (ref.kind, ref.name):
            raise RevisionUnusable(f'ConfigMap "{name}" holds another runtime than the TrainJob names')
        return runtime

    def _remember(self, namespace: str, name: str, runtime: TrainingRuntime) -> None:
        self._known[namespace, name] = runtime
        _keep_newest(self._known, (namespace, name))


def _keep_newest(known: OrderedDict[tuple[str, str], Any], used: tuple[str, str]) -> None:
    known.move_to_end(used)
    while len(known) > REMEMBERED:
        known.popitem(last=False)


def revision_of(job: TrainJob, workload: Workload | None) -> str:
    """The name of the revision that a job is bound to: its workload's word first, its status repeats it."""
    named = workload.metadata.annotation(RUNTIME_REVISION) if workload is not None else None
    if named:
        return named
    return (job.status.runtime_revision if job.status else None) or ""


def content_of(runtime: Json) -> Json:
    """What makes a runtime this runtime: kind, name, labels, annotations (kubectl's own aside) and spec."""
    metadata = runtime["metadata"]
    kept: Json = {"name": metadata["name"]}
    if labels := metadata.get("labels"):
        kept["labels"] = labels
    if annotations := {key: text for key, text in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}:
        kept["annotations"] = annotations
    return {
        "apiVersion": TRAINING_RUNTIMES.api_version,
        "kind": runtime["kind"],
        "metadata": kept,
        "spec": runtime.get("spec") or {},
    }


def _json_of(kind: str, runtime: StoredRuntime) -> Json:
    metadata = msgspec.to_builtins(runtime.metadata)
    return {"kind": kind, "metadata": metadata, "spec": msgspec.json.decode(runtime.spec)}


def name_of(content: Json) -> str:
    """The revision's name: the runtime's, shortened to fit, and a hash of the content with its members in order."""
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:HASH_LENGTH]
    stem = str(content["metadata"]["name"])[: 253 - HASH_LENGTH - 1].rstrip("-.")
    return f"{stem}-{digest}"
