"""What the operator keeps in memory of its own kinds: only what a decision reads. `kinds` has those of plugins.

A TrainJob's spec can be many kilobytes of commands and patches that matter only when its children are built. The
store keeps it whole until the workload exists, so that a first start reads nothing from the API server, and without
them from then on; a resume reads the TrainJob live. Runtimes are kept whole, as the bytes they came in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONTROLLER_REVISIONS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
)
from trainwright.api.trainjob import RuntimeRef, Trainer, TrainJob, TrainJobSpec
from trainwright.controlloop import Key, Source
from trainwright.pipeline.ownership import BUILT_BY_US

BY_RUNTIME = "unfinished jobs by runtime"
BY_RUNTIME_LABEL = "unfinished jobs by the label of their runtime's revisions"
REVISIONS_BY_LABEL = "revisions by label"
RUNTIME_LABEL = "trainer.kubeflow.org/runtime"  # a hash of kind and name: names may be longer than label values
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def thin_metadata(metadata: ObjectMeta) -> ObjectMeta:
    annotations = metadata.annotations
    if not annotations or LAST_APPLIED not in annotations:
        return metadata
    kept = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    return msgspec.structs.replace(metadata, annotations=kept)


def is_whole(job: TrainJob) -> bool:
    """Whether a TrainJob from the store has all of its spec, so that children can be built from it."""
    return job.status is None or not job.status.workload_uid


def _thin_trainer(job: TrainJob) -> Trainer | None:
    """Of an elastic job, the nodes that it asks for may change while it trains."""
    if job.spec is None or job.spec.trainer is None or job.status is None or job.status.elastic is None:
        return None
    return Trainer(num_nodes=job.spec.trainer.num_nodes)


def thin_train_job(job: TrainJob) -> TrainJob:
    """A TrainJob as decisions about time, state and ownership read it; whole until its workload exists."""
    spec = job.spec
    if spec is not None and not is_whole(job):
        spec = TrainJobSpec(
            runtime_ref=spec.runtime_ref,
            suspend=spec.suspend,
            active_deadline_seconds=spec.active_deadline_seconds,
            managed_by=spec.managed_by,
            trainer=_thin_trainer(job),
        )
    return msgspec.structs.replace(job, metadata=thin_metadata(job.metadata), spec=spec)


class StoredRuntime(msgspec.Struct, frozen=True):
    """A runtime in a store; `spec` is read when a job starts with it, and not before."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


def thin_runtime(runtime: StoredRuntime) -> StoredRuntime:
    return StoredRuntime(thin_metadata(runtime.metadata), msgspec.Raw(bytes(runtime.spec)))


def thin_partial(thing: PartialObjectMetadata) -> PartialObjectMetadata:
    return PartialObjectMetadata(thin_metadata(thing.metadata))


def runtime_key(ref: RuntimeRef, namespace: str) -> str:
    """One string for the runtime that a TrainJob in `namespace` names."""
    where = namespace if ref.kind == TRAINING_RUNTIMES.kind else ""
    return f"{ref.kind}/{where}/{ref.name}"


def runtimes_of(job: TrainJob) -> Iterable[str]:
    return (runtime_key(job.spec.runtime_ref, job.metadata.namespace),) if job.spec else ()


@lru_cache(1024)
def runtime_label(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind}/{name}".encode()).hexdigest()[:16]


def runtime_labels_of(job: TrainJob) -> Iterable[str]:
    """What the revisions of the job's runtime are labelled with, in the job's namespace."""
    if job.spec is None:
        return ()
    ref = job.spec.runtime_ref
    return (f"{job.metadata.namespace}/{runtime_label(ref.kind, ref.name)}",)


def revision_labels_of(revision: PartialObjectMetadata) -> Iterable[str]:
    return (f"{revision.metadata.namespace}/{revision.metadata.label(RUNTIME_LABEL)}",)


def _while_unfinished(names_of: Callable[[TrainJob], Iterable[str]]) -> Callable[[TrainJob], Iterable[str]]:
    """Ten thousand jobs may have named a runtime; whoever asks wants to know which of them still need it."""
    return lambda job: () if job.is_finished else names_of(job)


class Views:
    """The sources of TrainJobs, runtimes and revisions, each shared by whoever needs it."""

    def __init__(self) -> None:
        self.jobs: Source[TrainJob] = Source(
            TRAIN_JOBS,
            TrainJob,
            thin=thin_train_job,
            indexes={
                BY_RUNTIME: _while_unfinished(runtimes_of),
                BY_RUNTIME_LABEL: _while_unfinished(runtime_labels_of),
            },
        )
        self.runtimes: Source[StoredRuntime] = Source(TRAINING_RUNTIMES, StoredRuntime, thin=thin_runtime)
        self.cluster_runtimes: Source[StoredRuntime] = Source(
            CLUSTER_TRAINING_RUNTIMES, StoredRuntime, thin=thin_runtime
        )
        self.revisions: Source[PartialObjectMetadata] = Source(
            CONTROLLER_REVISIONS,
            PartialObjectMetadata,
            metadata_only=True,
            label_selector=f"{BUILT_BY_US},{RUNTIME_LABEL}",
            indexes={REVISIONS_BY_LABEL: revision_labels_of},
            thin=thin_partial,
        )

    def runtime(self, ref: RuntimeRef, namespace: str) -> StoredRuntime | None:
        """The runtime that a TrainJob in `namespace` names, if the store has it."""
        if ref.kind == TRAINING_RUNTIMES.kind:
            return self.runtimes.store.get(Key(namespace, ref.name))
        return self.cluster_runtimes.store.get(Key("", ref.name))
