"""The runtime as it was when a TrainJob first met it: created once, shared, never changed (D25, I4).

One `ControllerRevision` stands for one content of one runtime in one namespace; its name ends in a hash of that
content, so two operators, or a thousand TrainJobs, all arrive at the same object. A TrainJob is bound to a revision
by the annotation of its workload, which its status repeats; until then it takes the runtime as it is now.
"""

from __future__ import annotations

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
from trainwright.controlloop import Key, Store
from trainwright.operator.applier import FIELD_MANAGER
from trainwright.operator.views import LAST_APPLIED, RUNTIME_LABEL, runtime_label
from trainwright.pipeline import PipelineError, RuntimeNotFound, Workload, runtime_kind
from trainwright.pipeline.ownership import MANAGED_BY, MANAGED_BY_LABEL

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
    data: dict[str, Any] | None = None


class _Snapshot(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class Revisions:
    """`store` knows which revisions there are, where one is kept; the webhooks, which create none, do without."""

    def __init__(self, client: Client, store: Store[PartialObjectMetadata] | None = None) -> None:
        self._client = client
        self._store = store
        self._known: OrderedDict[tuple[str, str], TrainingRuntime] = OrderedDict()  # immutable, so safe to remember

    async def ensure(self, job: TrainJob, workload: Workload | None) -> Revision:
        """The revision that `job` is bound to, or, for a job that has none, a revision of the runtime as it is now."""
        assert job.spec is not None
        ref = job.spec.runtime_ref
        runtime_kind(ref)  # raises RuntimeNotSupported
        name = revision_of(job, workload)
        if name:
            bound = await self._read(job.metadata.namespace, name, ref)
            if bound is not None:
                return Revision(name, bound)
        elif workload is not None:
            snapshot = await self._snapshot(job)
            if snapshot is not None:
                return Revision("", snapshot)
        return await self._of_live_runtime(job.metadata.namespace, ref)

    async def read_bound(self, job: TrainJob, workload: Workload | None) -> TrainingRuntime | None:
        """The runtime that the job is bound to, if it is bound and the revision is there. Writes nothing."""
        name = revision_of(job, workload)
        if not name or job.spec is None:
            return None
        return await self._read(job.metadata.namespace, name, job.spec.runtime_ref)

    async def live_runtime(self, namespace: str, ref: RuntimeRef) -> dict[str, Any]:
        """The runtime as it is now, as JSON; `RuntimeNotFound` when it is not there."""
        try:
            if ref.kind == TRAINING_RUNTIMES.kind:
                return await self._client.get(TRAINING_RUNTIMES, ref.name, namespace)
            return await self._client.get(CLUSTER_TRAINING_RUNTIMES, ref.name)
        except NotFound as error:
            if error.is_missing_type:
                raise
            raise RuntimeNotFound(ref.kind, ref.name) from error

    async def _of_live_runtime(self, namespace: str, ref: RuntimeRef) -> Revision:
        content = content_of(await self.live_runtime(namespace, ref))
        name = name_of(content)
        if self._store is None or self._store.get(Key(namespace, name)) is None:
            await self._create(namespace, name, content)
        runtime = runtime_from(content)
        self._remember(namespace, name, runtime)
        return Revision(name, runtime)

    async def _create(self, namespace: str, name: str, content: dict[str, Any]) -> None:
        body: dict[str, Any] = {
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
            await self._client.create(CONTROLLER_REVISIONS, body, namespace, field_manager=FIELD_MANAGER, decode=bytes)
        except AlreadyExists:
            found = await self._client.get(CONTROLLER_REVISIONS, name, namespace, decode=_Stored)
            if found.data is None or name_of(found.data) != name:
                raise RevisionUnusable(
                    f'ControllerRevision "{name}" exists already and does not hold the runtime that its name'
                    " stands for; delete it"
                ) from None

    async def _read(self, namespace: str, name: str, ref: RuntimeRef) -> TrainingRuntime | None:
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
        self._known.move_to_end((namespace, name))
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def revision_of(job: TrainJob, workload: Workload | None) -> str:
    """The name of the revision that a job is bound to: its workload's word first, its status repeats it."""
    named = workload.metadata.annotation(RUNTIME_REVISION) if workload is not None else None
    if named:
        return named
    return (job.status.runtime_revision if job.status else None) or ""


def content_of(runtime: dict[str, Any]) -> dict[str, Any]:
    """What makes a runtime this runtime: kind, name, labels, annotations (kubectl's own aside) and spec."""
    metadata = runtime["metadata"]
    kept: dict[str, Any] = {"name": metadata["name"]}
    if labels := metadata.get("labels"):
        kept["labels"] = labels
    if annotations := {key: text for key, text in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}:
        kept["annotations"] = annotations
    return {
        "apiVersion": runtime.get("apiVersion", TRAINING_RUNTIMES.api_version),
        "kind": runtime["kind"],
        "metadata": kept,
        "spec": runtime.get("spec") or {},
    }


def name_of(content: dict[str, Any]) -> str:
    """The revision's name: the runtime's, shortened to fit, and a hash of the content with its members in order."""
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:HASH_LENGTH]
    stem = str(content["metadata"]["name"])[: 253 - HASH_LENGTH - 1].rstrip("-.")
    return f"{stem}-{digest}"
