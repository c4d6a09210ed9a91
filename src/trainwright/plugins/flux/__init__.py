"""Flux: a Flux broker on every node, started from a view image that an init container copies in.

The TrainJob's command becomes the argument of a script that joins the brokers and submits it from the first node.
Brokers authenticate each other with a CURVE certificate that is the same for all pods of the job.

The operator's role needs: create, get, list, patch and watch of `configmaps`, and create of `secrets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwright.api.resources import CONFIG_MAPS
from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply, CreateOnce, Intention, Repair
from trainwright.pipeline.podset import NODE
from trainwright.pipeline.workload import Watch
from trainwright.plugins.flux.scripts import Cluster, entrypoint_script, init_script
from trainwright.schema.errors import FieldError, invalid
from trainwright.schema.jsonobject import Json

INSTALLER = "flux-installer"
SCRIPTS_DIRECTORY = "/etc/flux-config"


class Settings(NamedTuple):
    """What a user can choose, by variables of the same names on the runtime's container or the TrainJob."""

    FLUX_VIEW_IMAGE: str = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
    FLUX_NETWORK_DEVICE: str = "eth0"
    FLUX_QUEUE_POLICY: str = "fcfs"


class Flux:
    """Runtimes with `mlPolicy.flux`. Count and env of the trainer are PlainML's work."""

    name = "Flux"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        if info.ml_policy.flux is None:
            return
        info.rewrite_command(["/bin/bash", f"{SCRIPTS_DIRECTORY}/entrypoint.sh", _command(info)], self.name)
        info.args = None  # they are in the command now
        scripts = {"name": _scripts_name(info), "mountPath": SCRIPTS_DIRECTORY, "readOnly": True}
        image = _settings(info).FLUX_VIEW_IMAGE
        for pod_set in info.pod_sets:
            if pod_set.name != NODE:
                continue
            pod_set.set_volumes(*_volumes(info))
            pod_set.set_init_container(
                {
                    "name": INSTALLER,
                    **({"image": image} if image else {}),
                    "command": ["/bin/bash", f"{SCRIPTS_DIRECTORY}/init.sh"],
                    "volumeMounts": [{"name": "flux-install", "mountPath": "/mnt/flux"}, scripts],
                }
            )
            if (container := pod_set.container(NODE)) is not None:
                container.set_volume_mounts(
                    {"name": "flux-install", "mountPath": "/mnt/flux"},
                    {"name": "spack-install", "mountPath": "/opt/software"},
                    scripts,
                    {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
                    {"name": "shared-memory", "mountPath": "/dev/shm", "readOnly": True},  # noqa: S108 - a mount in a pod
                )

    def build(self, info: Info, job: TrainJob) -> Iterator[Intention]:
        if info.ml_policy.flux is None:
            return
        cluster = _cluster(info)
        yield Apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": _scripts_name(info)},
                "data": {"entrypoint.sh": entrypoint_script(cluster), "init.sh": init_script(cluster)},
            },
            repair=Repair.CHANGED,
        )
        yield CreateOnce(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": _curve_name(info)},
                "data": info.keys.curve_certificate(info.name, job.metadata.uid),
            }
        )

    def watches(self) -> Iterator[Watch]:
        yield Watch(CONFIG_MAPS)

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        if info.ml_policy.flux is None:
            return
        node = info.pod_set(NODE)
        if node is not None and any(container.name == INSTALLER for container in node.init_containers):
            detail = f"InitContainer '{INSTALLER}' is reserved"
            yield invalid("spec.trainer.initContainers", INSTALLER, detail)


def _command(info: Info) -> str:
    """The user's command as one line: what the first node submits."""
    words = info.trainer_spec.command
    if words is None:
        words = info.trainer_container.command if info.trainer_container else []
    return " ".join([*words, *(info.trainer_spec.args or [])]).strip()


def _settings(info: Info) -> Settings:
    chosen: dict[str, str] = {}
    if info.trainer_container is not None:
        chosen |= {v["name"]: v["value"] for v in info.trainer_container.env if v.get("value") is not None}
    chosen |= {v["name"]: v.get("value") or "" for v in info.trainer_spec.env or ()}
    return Settings()._replace(**{name: chosen[name] for name in Settings._fields if name in chosen})


def _cluster(info: Info) -> Cluster:
    flux = info.ml_policy.flux
    tasks = info.num_proc_per_node
    if not isinstance(tasks, int):
        tasks = flux.num_proc_per_node if flux is not None else 1
    nodes = info.trainer_spec.num_nodes
    if nodes is None:  # the runtime's number, which the trainer's pods have by now
        nodes = info.trainer.count if info.trainer is not None else 1
    settings = _settings(info)
    return Cluster(
        name=info.name,
        namespace=info.job.metadata.namespace,
        nodes=nodes,
        tasks=tasks,
        gpus=info.node_resources.gpus,
        network_device=settings.FLUX_NETWORK_DEVICE,
        queue_policy=settings.FLUX_QUEUE_POLICY,
    )


def _scripts_name(info: Info) -> str:
    return f"{info.name}-flux-entrypoint"


def _curve_name(info: Info) -> str:
    return f"{info.name}-flux-curve"


def _volumes(info: Info) -> list[Json]:
    return [
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": _scripts_name(info), "configMap": {"name": _scripts_name(info), "defaultMode": 0o755}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": _curve_name(info), "defaultMode": 0o400}},
    ]
