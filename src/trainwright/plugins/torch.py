"""PyTorch: PET_* variables for torchrun, and torchtune's command line."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.podset import COMPLETION_INDEX, Container, env_from_field, env_var


class Torch:
    """Runtimes with `mlPolicy.torch`."""

    name = "Torch"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        torch = info.ml_policy.torch
        if torch is None:
            return
        if info.trainer is not None:
            info.set_num_nodes(info.trainer)
        processes = processes_per_node(info)
        cluster = [
            env_var("PET_NNODES", str(info.trainer.count if info.trainer else 1)),
            env_var("PET_NPROC_PER_NODE", str(processes)),
            env_from_field("PET_NODE_RANK", COMPLETION_INDEX),
        ]
        master = [
            env_var("PET_MASTER_ADDR", master_address(info)),
            env_var("PET_MASTER_PORT", str(TRAINER_PORT)),
        ]
        if (container := info.trainer_container) is not None:
            info.set_trainer_env(container)
            container.set_env(*cluster, *master)
            container.set_ports({"containerPort": TRAINER_PORT})
        for target in _injection_targets(info):
            target.set_env(*cluster, *master)


def processes_per_node(info: Info) -> int | str:
    """A number, or the word torchrun resolves inside the pod: `auto` where there are GPUs, `gpu` where the user says
    so.
    """
    value = info.num_proc_per_node
    if value is None and info.ml_policy.torch is not None:
        value = info.ml_policy.torch.num_proc_per_node
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if value is None or value == "auto":
        value = "auto" if info.node_resources.gpus > 0 else "cpu"
    return max(1, info.node_resources.cpus) if value == "cpu" else value


def master_address(info: Info) -> str:
    """Rank 0's host name: always the job named `node`, under the TrainJob's own name."""
    return f"{info.name}-node-0-0.{info.name}"


def _injection_targets(info: Info) -> Iterator[Container]:
    torch = info.ml_policy.torch
    targets = torch.env_injection.targets if torch is not None and torch.env_injection is not None else None
    for target in targets or ():
        pod_set = info.pod_set(target.job_name)
        for name in target.container_names:
            container = pod_set.any_container(name) if pod_set is not None else None
            if container is None:
                raise TemplateInvalid(missing_target(target.job_name, name))
            yield container


def missing_target(job_name: str, container: str) -> str:
    return f'envInjection target podSet "{job_name}" container "{container}" not found in runtime template'
