"""A v1 job becomes a TrainJob and, where no shipped runtime can say it, a TrainingRuntime beside it.

In: a `V1Job` and options. Out: `Converted`: the objects, the layout and the findings about the run's policies. A
shipped runtime serves when one template and plain policies are all there is; then the TrainJob carries the image, the
command and what else differs from pod to pod. Otherwise the runtime carries the pod templates as they were.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainwright.api.wellknown import PORT_VARIABLES
from trainwright.conversion import mpi, policies, templates
from trainwright.conversion.findings import Finding, Refused, Verdict
from trainwright.conversion.layout import NODE, Layout, layout_of
from trainwright.conversion.policies import Gang
from trainwright.conversion.v1job import JAX, MPI, PYTORCH, TENSORFLOW, XGBOOST, V1Job
from trainwright.conversion.v1pods import pods_of
from trainwright.conversion.variables import PORTS, is_torchrun, variables_for
from trainwright.schema.jsonobject import Json

API_VERSION = "trainer.kubeflow.org/v1alpha1"
GROUP = "trainer.kubeflow.org"
SHIPPED = {PYTORCH.name: "torch-distributed", XGBOOST.name: "xgboost-distributed", JAX.name: "jax-distributed"}
FRAMEWORKS = {
    PYTORCH.name: "torch",
    MPI.name: "mpi",
    TENSORFLOW.name: "tensorflow",
    XGBOOST.name: "xgboost",
    JAX.name: "jax",
}
MANAGER = "trainwright.dev/convert"
PROCESSES_ANNOTATION = "trainer.kubeflow.org/num-proc-per-node"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SHIPPED_PORT = "29500"
PATCHABLE = {"serviceAccountName", "volumes", "imagePullSecrets", "securityContext", "nodeSelector", "affinity"}
PATCHABLE |= {"tolerations", "schedulingGates", "terminationGracePeriodSeconds"}
"""Fields of a pod that a TrainJob's runtimePatches can set."""
TRAINER_FIELDS = {"name", "image", "command", "args", "env", "resources", "volumeMounts", "securityContext", "ports"}
"""Fields of a container that a TrainJob can set; the port is the plugin's."""


@dataclass(frozen=True, slots=True)
class Options:
    wrap: str | None = None
    """`torchrun`: start the script of a PyTorchJob by torchrun in place of Python."""
    gang: str | None = None
    """The gang scheduler of v1's operator: volcano, coscheduling or none."""


@dataclass(frozen=True, slots=True)
class Converted:
    job: V1Job
    layout: Layout
    train_job: Json
    runtime: Json | None
    findings: list[Finding]

    @property
    def objects(self) -> list[Json]:
        return [self.train_job] if self.runtime is None else [self.runtime, self.train_job]


def convert(job: V1Job, options: Options = Options()) -> Converted:  # noqa: B008
    """The converted job; raises `Refused`."""
    wrapped = _wrapped(job) if options.wrap else job
    gang = policies.gang(wrapped, options.gang)
    layout = layout_of(wrapped, is_gang=gang.policy is not None)
    shipped = not policies.needs_own_runtime(layout, gang) and _fits_shipped(layout)
    found = [*policies.findings(layout, shipped), *gang.findings, *_name_findings(job, layout)]
    if wrapped is not job:
        found.append(Finding("command", Verdict.SAME, "started by torchrun, as asked"))
    if wrapped.kind is MPI:
        found += mpi.findings(layout)
    if shipped:
        return Converted(job, layout, _shipped_train_job(layout), None, found)
    return Converted(job, layout, _own_train_job(layout), _own_runtime(layout, gang), found)


def _metadata(job: V1Job) -> Json:
    metadata: Json = {"name": job.name, "namespace": job.namespace}
    if job.labels:
        metadata["labels"] = dict(job.labels)
    _, annotations = policies.trainjob_fields(job)
    annotations = {**{key: value for key, value in job.annotations.items() if key != LAST_APPLIED}, **annotations}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def _train_job(job: V1Job, runtime: Json, trainer: Json, **more: Json | list[Json]) -> Json:
    fields, _ = policies.trainjob_fields(job)
    spec: Json = {"runtimeRef": {"apiGroup": GROUP, **runtime}, **fields, **more}
    if trainer:
        spec["trainer"] = trainer
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": _metadata(job), "spec": spec}


def _own_train_job(layout: Layout) -> Json:
    job, trainer = layout.job, {}
    if job.kind is MPI:
        trainer = {"numNodes": mpi.num_nodes(layout), "numProcPerNode": job.spec.get("slotsPerWorker", 1)}
    elif layout.groups[0].name == NODE:
        trainer = {"numNodes": layout.groups[0].pods}
    return _train_job(job, {"kind": "TrainingRuntime", "name": job.name}, trainer)


def _own_runtime(layout: Layout, gang: Gang) -> Json:
    job = layout.job
    whole, _ = policies.success(layout)
    jobs = mpi.replicated_jobs(layout, gang) if job.kind is MPI else templates.replicated_jobs(layout, gang)
    jobset: Json = {**policies.clean_up(job), "replicatedJobs": jobs}
    if whole:
        jobset["successPolicy"] = whole
    template: Json = {"spec": jobset}
    if gang.annotations:
        template["metadata"] = {"annotations": dict(gang.annotations)}
    spec: Json = {"template": template}
    if job.kind is MPI:
        jobset["network"] = {"publishNotReadyAddresses": True}
        spec["mlPolicy"] = {"numNodes": 1, "mpi": mpi.policy(layout)}  # the launcher; the TrainJob counts the nodes
    elif layout.groups[0].name == NODE:
        spec["mlPolicy"] = {"numNodes": layout.groups[0].pods}
    if gang.policy is not None:
        spec["podGroupPolicy"] = gang.policy
    labels = {"trainer.kubeflow.org/framework": FRAMEWORKS[job.kind.name]}
    if job.kind is TENSORFLOW:
        labels = {}  # the label would let the TensorFlow plugin write a TF_CONFIG of its own
    metadata: Json = {"name": job.name, "namespace": job.namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": API_VERSION, "kind": "TrainingRuntime", "metadata": metadata, "spec": spec}


def _fits_shipped(layout: Layout) -> bool:
    job = layout.job
    if job.kind.name not in SHIPPED or len(layout.groups) != 1:
        return False
    pod_spec = layout.groups[0].replica.pod_spec
    containers = pod_spec["containers"]
    if len(containers) != 1 or set(pod_spec) - PATCHABLE - {"containers", "restartPolicy"}:
        return False
    container = containers[0]
    mounts = [mount.get("name") for mount in container.get("volumeMounts") or ()]
    own_ports = [port for port in container.get("ports") or () if port.get("name") != job.kind.port_name]
    if set(container) - TRAINER_FIELDS or len(set(mounts)) != len(mounts) or own_ports:
        return False
    if not container.get("command") and not container.get("args"):
        return False  # the image's own entry point may be torchrun: keep what v1 would give it
    return job.kind is not PYTORCH or not is_torchrun(container) or _is_exact(job, container)


def _is_exact(job: V1Job, container: Json) -> bool:
    """Whether the Torch plugin counts processes as torchrun would by v1's word."""
    limits = (container.get("resources") or {}).get("limits") or {}
    has_gpus = any("gpu" in name for name in limits)
    return str(job.processes).isdecimal() or job.processes == "gpu" or (job.processes == "auto" and has_gpus)


def _shipped_train_job(layout: Layout) -> Json:
    job, group = layout.job, layout.groups[0]
    container = group.replica.pod_spec["containers"][0]
    trainer: Json = {"numNodes": group.pods}
    for field, name in (
        ("image", "image"),
        ("command", "command"),
        ("args", "args"),
        ("resources", "resourcesPerNode"),
    ):
        if container.get(field):
            trainer[name] = copy.deepcopy(container[field])
    entries = list(_shipped_variables(layout, container))
    if env := templates.env_with(container.get("env") or [], entries):
        trainer["env"] = env
    if job.kind is PYTORCH and str(job.processes).isdecimal():
        trainer["numProcPerNode"] = int(str(job.processes))
    train_job = _train_job(
        job,
        {"kind": "ClusterTrainingRuntime", "name": SHIPPED[job.kind.name]},
        trainer,
        runtimePatches=[_patch(layout)],
    )
    if job.kind is PYTORCH and job.processes in ("gpu", "cpu"):
        train_job["metadata"].setdefault("annotations", {})[PROCESSES_ANNOTATION] = job.processes
    return train_job


def _shipped_variables(layout: Layout, container: Json) -> Iterator[Json]:
    """v1's variables that the runtime's plugin does not set; at the plugin's port, where that is the meeting place."""
    job = layout.job
    for entry in variables_for(layout, layout.groups[0]):
        if entry["name"].startswith("PET_"):
            continue
        if job.kind is PYTORCH and is_torchrun(container) and entry["name"] != "PYTHONUNBUFFERED":
            continue
        yield {**entry, "value": SHIPPED_PORT} if entry["name"] in ("MASTER_PORT", "COORDINATOR_PORT") else entry


def _patch(layout: Layout) -> Json:
    """What a TrainJob says about its pods beyond the trainer."""
    group = layout.groups[0]
    metadata = templates.pod_metadata(layout, group)
    if layout.job.kind is PYTORCH and PORT_VARIABLES in (metadata.get("annotations") or {}):
        del metadata["annotations"][PORT_VARIABLES]  # the plugin declares them
        if not metadata["annotations"]:
            del metadata["annotations"]
    spec = {key: copy.deepcopy(value) for key, value in group.replica.pod_spec.items() if key in PATCHABLE}
    container = group.replica.pod_spec["containers"][0]
    own = {key: copy.deepcopy(container[key]) for key in ("volumeMounts", "securityContext") if container.get(key)}
    if own:
        spec["containers"] = [{"name": NODE, **own}]
    pod: Json = {"metadata": metadata, **({"spec": spec} if spec else {})}
    job: Json = {"name": NODE, "template": {"spec": {"template": pod}}}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def _name_findings(job: V1Job, layout: Layout) -> Iterator[Finding]:
    spelled = templates.mentions(job)
    if not spelled:
        return
    name, where = spelled[0]
    _, type_name, index = next((pod.name, pod.type, pod.index) for pod in pods_of(job) if pod.name == name)
    yield Finding("names", Verdict.DIFFERS, f"{where} spells out {name}, which is now {layout.host(type_name, index)}")


def _wrapped(job: V1Job) -> V1Job:
    """The job with its scripts started by torchrun."""
    if job.kind is not PYTORCH:
        raise Refused([f"--wrap torchrun is for PyTorchJobs; this is a {job.kind.name}"])
    replicas = {}
    for name, replica in job.replicas.items():
        template = copy.deepcopy(replica.template)
        container = job.main_container(template["spec"])
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        if is_torchrun(container):
            replicas[name] = replica
            continue
        if not words or not str(words[0]).rsplit("/", 1)[-1].startswith("python"):
            where = f"spec.{job.kind.field}[{name}].template"
            raise Refused(
                [f"{where}: --wrap torchrun needs a command that begins with python, such as [python, train.py]"]
            )
        rest = [word for word in words[1:] if word != "-u"]
        container["command"] = ["torchrun", *rest]
        container.pop("args", None)
        replicas[name] = replace(replica, template=template)
    return replace(job, replicas=replicas)


__all__ = ["PORTS", "Converted", "Options", "convert"]
