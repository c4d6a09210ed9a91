"""What a TrainJob says of its steps: the initializers' sources, and the trainer's image, command and variables.

Only the plugin that builds the workload puts them into the containers, last of all, so that the TrainJob has the last
word over every other plugin. In: a copy of the build's spec. Out: the same, with the TrainJob's values in it.
"""

from __future__ import annotations

import msgspec

from trainwright.api.trainjob import InitializerStep
from trainwright.pipeline.info import Info, trainjob_env
from trainwright.pipeline.podset import DATASET_INITIALIZER, INITIALIZERS, NODE, TRAINER, PodSet, env_var
from trainwright.schema.jsonobject import Json

STORAGE_URI = "STORAGE_URI"


def copy_spec(info: Info) -> Json:
    """The spec to build a workload of; changing it leaves the build's own as it is."""
    spec: Json = msgspec.json.decode(msgspec.json.encode(info.spec))
    return spec


def set_steps(info: Info, spec: Json) -> None:
    """Put what the TrainJob says into the replicatedJobs of `spec`."""
    roles = {pod_set.name: pod_set.role for pod_set in info.pod_sets}
    for item in spec.get("replicatedJobs") or ():
        pod_set = PodSet(item)
        pod_set.role = roles[pod_set.name]
        _set_initializer(info, pod_set)
        _set_trainer(info, pod_set)


def _set_initializer(info: Info, pod_set: PodSet) -> None:
    if pod_set.role not in INITIALIZERS:
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


def _set_trainer(info: Info, pod_set: PodSet) -> None:
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
