"""JobSet: the object that runs the pods.

Gives each pod its host name, then turns the template into the JobSet: initializers and trainer get what the TrainJob
says of them, and the whole is suspended when the TrainJob is. A JobSet that runs is left alone; it is written when it
is missing, while the TrainJob is suspended, and when it must be resumed.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trainwright.api.trainjob import InitializerStep, TrainJob
from trainwright.api.wellknown import RUNTIME_REVISION
from trainwright.pipeline.info import Info, trainjob_env
from trainwright.pipeline.plan import Apply
from trainwright.pipeline.podset import (
    DATASET_INITIALIZER,
    MODEL_INITIALIZER,
    NODE,
    TRAINER,
    PodSet,
    env_var,
)
from trainwright.pipeline.provenance import PLUGIN, Origin
from trainwright.pipeline.typed import invalid_value, runtime_ref_text
from trainwright.plugins.override_rules import validate_overrides
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

REVISION_ANNOTATION = RUNTIME_REVISION
STORAGE_URI = "STORAGE_URI"
INITIALIZER_VOLUME = "initializer"


class Endpoints:
    """The host names of a pod set, made one by one as they are asked for."""

    def __init__(self, info: Info, pod_set: PodSet) -> None:
        self._stem = f"{info.name}-{pod_set.name}"
        self._subdomain = (info.spec.get("network") or {}).get("subdomain") or info.name
        self._pod_set = pod_set

    def __iter__(self) -> Iterator[str]:
        for replica in range(self._pod_set.replicas):
            for pod in range(self._pod_set.count):
                yield f"{self._stem}-{replica}-{pod}.{self._subdomain}"


class JobSet:
    """The JobSet of a TrainJob."""

    name = "JobSet"

    def sync_template(self, info: Info, job: TrainJob) -> None:
        for pod_set in info.pod_sets:
            pod_set.endpoints = Endpoints(info, pod_set)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if info.jobset_is_running:
            return
        spec: Json = msgspec.json.decode(
            msgspec.json.encode(info.spec)
        )  # the build does not change what it was built from
        jobset: Json = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {}, "spec": spec}
        metadata: Json = jobset["metadata"]
        if info.labels:
            metadata["labels"] = dict(info.labels)
        if info.annotations:
            metadata["annotations"] = dict(info.annotations)
        info.trace.follow(jobset)
        info.trace.mark(Origin(PLUGIN, self.name, "build"))
        metadata["name"] = info.name
        info.came_from("metadata.name")
        roles = {pod_set.name: pod_set.role for pod_set in info.pod_sets}
        for item in spec.get("replicatedJobs") or ():
            pod_set = PodSet(item)
            pod_set.role = roles[pod_set.name]
            self._set_initializers(info, pod_set)
            self._set_trainer(info, pod_set)
        spec.pop("suspend", None)
        if info.job_spec.suspend is not None:
            spec["suspend"] = info.job_spec.suspend
            info.came_from("spec.suspend")
        if info.observed.runtime_revision:
            metadata.setdefault("annotations", {})[REVISION_ANNOTATION] = info.observed.runtime_revision
        yield Apply(jobset)

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError | str]:
        initializer = info.job_spec.initializer
        if initializer is not None and initializer.dataset is not None:
            yield from _initializer_faults(info, DATASET_INITIALIZER, "datasetConfig")
        if initializer is not None and initializer.model is not None:
            yield from _initializer_faults(info, MODEL_INITIALIZER, "modelConfig")
        yield from validate_overrides(info, job, old)

    def _set_initializers(self, info: Info, pod_set: PodSet) -> None:
        if pod_set.role not in (DATASET_INITIALIZER, MODEL_INITIALIZER):
            return
        pod_set.json["replicas"] = 1
        initializer = info.job_spec.initializer
        container = pod_set.container(pod_set.role)
        if initializer is None or container is None:
            return
        field = "dataset" if pod_set.role == DATASET_INITIALIZER else "model"
        step: InitializerStep | None = getattr(initializer, field)
        if step is None:
            return
        if step.storage_uri is not None:
            container.set_env(env_var(STORAGE_URI, step.storage_uri))
            info.came_from(f"spec.initializer.{field}.storageUri")
        for index, variable in enumerate(step.env or ()):
            container.set_env(trainjob_env(variable))
            info.came_from(f"spec.initializer.{field}.env[{index}]")
        if step.secret_ref is not None:
            secret = {"secretRef": {"name": step.secret_ref.get("name", "")}}
            container.json["envFrom"] = [*(container.json.get("envFrom") or ()), secret]
            info.came_from(f"spec.initializer.{field}.secretRef")

    def _set_trainer(self, info: Info, pod_set: PodSet) -> None:
        container = pod_set.container(NODE)
        trains = pod_set.role == TRAINER
        if trains:
            pod_set.json["replicas"] = 1
        if container is None:
            return
        if trains and info.trainer_spec.image is not None:
            container.json["image"] = info.trainer_spec.image
            info.came_from("spec.trainer.image")
        if trains and info.command is not None:
            container.json["command"] = info.command
            info.trace.mark(info.command_origin)
        if trains and info.args is not None:
            container.json["args"] = info.args
            info.came_from("spec.trainer.args")
        mpi = info.ml_policy.mpi
        if trains or (pod_set.name == NODE and mpi is not None and mpi.run_launcher_as_node):
            info.set_trainer_env(container)


def _initializer_faults(info: Info, name: str, config: str) -> Iterator[FieldError]:
    """A TrainJob that fetches something needs a runtime that has where to fetch it."""
    reference = runtime_ref_text(info.job_spec.runtime_ref)
    pod_set = info.pod_set(name)
    if pod_set is None:
        detail = f"must have {name} job when trainJob is configured with input {config}"
        yield invalid_value("spec.runtimeRef", reference, detail)
    elif pod_set.any_container(name) is None:
        detail = f"must have container with name - {name} in the {name} job"
        yield invalid_value("spec.runtimeRef", reference, detail)
    else:
        container = pod_set.container(name)
        mounts = container.volume_mounts if container is not None else []
        if not any(mount.get("name") == INITIALIZER_VOLUME for mount in mounts):
            detail = f"must have volumeMount with name - {INITIALIZER_VOLUME} in container {name} of the {name} job"
            yield invalid_value("spec.runtimeRef", reference, detail)
