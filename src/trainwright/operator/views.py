"""What the operator keeps in memory of its own kinds: only what a decision reads. `kinds` has those of plugins.

A TrainJob's spec can be many kilobytes of commands and patches that matter only when its children are built. The
store keeps it without them, and whoever builds reads the TrainJob live; that read is also what keeps a stale store
from acting for a job that is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONTROLLER_REVISIONS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    Resource,
)
from trainwright.api.trainjob import RuntimeRef, TrainJob, TrainJobSpec
from trainwright.controlloop import Source
from trainwright.pipeline.ownership import BUILT_BY_US

BY_RUNTIME = "runtime"
BY_RUNTIME_LABEL = "runtime label"
RUNTIME_LABEL = "trainer.kubeflow.org/runtime"  # a hash of kind and name: names may be longer than label values
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def thin_metadata(metadata: ObjectMeta) -> ObjectMeta:
    annotations = metadata.annotations
    if annotations and LAST_APPLIED in annotations:
        annotations = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    return msgspec.structs.replace(metadata, managed_fields=None, annotations=annotations)


def thin_train_job(job: TrainJob) -> TrainJob:
    """A TrainJob as decisions about time, state and ownership read it. Never build from one of these."""
    spec = job.spec
    if spec is not None:
        spec = TrainJobSpec(
            runtime_ref=spec.runtime_ref,
            suspend=spec.suspend,
            active_deadline_seconds=spec.active_deadline_seconds,
            managed_by=spec.managed_by,
        )
    return msgspec.structs.replace(job, metadata=thin_metadata(job.metadata), spec=spec)


def thin_partial(thing: PartialObjectMetadata) -> PartialObjectMetadata:
    return PartialObjectMetadata(thin_metadata(thing.metadata))


def runtime_key(ref: RuntimeRef, namespace: str) -> str:
    """One string for the runtime that a TrainJob in `namespace` names."""
    where = namespace if ref.kind == TRAINING_RUNTIMES.kind else ""
    return f"{ref.kind}/{where}/{ref.name}"


def runtimes_of(job: TrainJob) -> Iterable[str]:
    return (runtime_key(job.spec.runtime_ref, job.metadata.namespace),) if job.spec else ()


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


class Views:
    """The sources of TrainJobs, runtimes and revisions, each shared by whoever needs it."""

    def __init__(self) -> None:
        self.jobs: Source[TrainJob] = Source(
            TRAIN_JOBS,
            TrainJob,
            thin=thin_train_job,
            indexes={BY_RUNTIME: runtimes_of, BY_RUNTIME_LABEL: runtime_labels_of},
        )
        self.runtimes: Source[PartialObjectMetadata] = _metadata(TRAINING_RUNTIMES)
        self.cluster_runtimes: Source[PartialObjectMetadata] = _metadata(CLUSTER_TRAINING_RUNTIMES)
        self.revisions: Source[PartialObjectMetadata] = Source(
            CONTROLLER_REVISIONS,
            PartialObjectMetadata,
            metadata_only=True,
            label_selector=f"{BUILT_BY_US},{RUNTIME_LABEL}",
            indexes={BY_RUNTIME_LABEL: revision_labels_of},
            thin=thin_partial,
        )


def _metadata(resource: Resource) -> Source[PartialObjectMetadata]:
    return Source(resource, PartialObjectMetadata, metadata_only=True, thin=thin_partial)
