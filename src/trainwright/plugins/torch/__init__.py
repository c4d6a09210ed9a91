"""PyTorch: PET_* variables for torchrun, elastic training, and torchtune's command line.

The operator's role needs, in `autoscaling`: create, get, list, patch and watch of `horizontalpodautoscalers`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import HORIZONTAL_POD_AUTOSCALERS
from trainwright.api.runtime import EnvInjectionTarget
from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import PORT_FLAGS, PORT_VARIABLES
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.plan import Apply, Repair
from trainwright.pipeline.podset import COMPLETION_INDEX, Container, PodSet, env_from_field, env_var
from trainwright.pipeline.typed import invalid_value, json_of, reserved_env
from trainwright.pipeline.workload import Watch
from trainwright.plugins.torch import elastic, torchtune
from trainwright.schema.errors import FieldError, invalid

RESERVED = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
MEETING_PORT = ("PET_MASTER_PORT", "MASTER_PORT")
MEETING_PORT_FLAGS = ("--master_port", "--master-port")
"""Where torchrun, or the user's own code, reads the port at which the processes meet."""

WORDS = ("auto", "cpu", "gpu")
"""What older generations allow in place of a number of processes."""


class Torch:
    """Runtimes with `mlPolicy.torch`."""

    name = "Torch"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        if info.ml_policy.torch is None:
            return
        if info.trainer is not None:
            info.set_num_nodes(info.trainer)
            self._make_elastic(info, info.trainer)
        processes = processes_per_node(info)
        cluster = [
            env_var("PET_NNODES", str(info.node_range or (info.trainer.count if info.trainer else 1))),
            env_var("PET_NPROC_PER_NODE", str(processes)),
            env_from_field("PET_NODE_RANK", COMPLETION_INDEX),
        ]
        master = [
            env_var("PET_MASTER_ADDR", info.first_node),
            env_var("PET_MASTER_PORT", str(TRAINER_PORT)),
        ]
        if info.node_range is not None:  # the rendezvous gives the ranks, and the address of the first
            del cluster[-1]
            master = elastic.variables(info)
        if (container := info.trainer_container) is not None:
            info.set_trainer_env(container)
            container.set_env(*cluster)
            if torchtune.is_tune_run(info.trainer_spec.command):
                info.rewrite_command(torchtune.command_line(info, processes), self.name)
            else:
                container.set_env(*master)
            container.set_ports({"containerPort": TRAINER_PORT})
            _declare_ports(info, info.trainer)
        for target, name, found in _injection_targets(info):
            if found is None:
                raise TemplateInvalid(_missing(target, name))
            found.set_env(*cluster, *master)
            _declare_ports(info, info.pod_set(target.job_name))

    def _make_elastic(self, info: Info, nodes: PodSet) -> None:
        limits = elastic.node_range(info)
        if limits is None:
            return
        if info.trainer_spec.num_nodes is None:
            nodes.count = limits.minimum
        info.node_range, nodes.least = limits, limits.minimum
        elastic.set_failure_policy(info, nodes)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        autoscaler = elastic.autoscaler(info)
        if autoscaler is not None:
            yield Apply(autoscaler, repair=Repair.CHANGED)

    def watches(self) -> Iterator[Watch]:
        yield Watch(HORIZONTAL_POD_AUTOSCALERS)

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        if info.ml_policy.torch is None:
            return
        for target, name, found in _injection_targets(info):
            if found is None:
                yield invalid_value(
                    "spec.runtimeRef", json_of(target, "trainer.EnvInjectionTarget"), _missing(target, name)
                )
        is_elastic = elastic.policy_of(info) is not None
        yield from reserved_env(info, (*RESERVED, *elastic.RESERVED) if is_elastic else RESERVED)
        yield from elastic.faults(info)
        processes = info.num_proc_per_node
        if isinstance(processes, str) and processes not in WORDS:
            detail = f"must have an int value or [{' '.join(WORDS)}]"
            yield invalid("spec.trainer.numProcPerNode", processes, detail)
        if torchtune.is_tune_run(info.trainer_spec.command):
            yield from torchtune.validate(info)


def processes_per_node(info: Info) -> int | str:
    """A number, or a word torchrun resolves inside the pod: `auto` where there are GPUs, `gpu` where the user says so.

    The TrainJob's value, else the runtime's of an older generation, else `auto`; `auto` without a GPU is a process
    for each CPU.
    """
    value = info.num_proc_per_node
    if value is None and info.ml_policy.torch is not None:
        value = info.ml_policy.torch.num_proc_per_node
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if value is None or value == "auto":
        value = "auto" if info.node_resources.gpus > 0 else "cpu"
    return max(1, info.node_resources.cpus) if value == "cpu" else value


def _injection_targets(info: Info) -> Iterator[tuple[EnvInjectionTarget, str, Container | None]]:
    """Every container that `envInjection` names, or None where the template has no such container."""
    torch = info.ml_policy.torch
    targets = torch.env_injection.targets if torch is not None and torch.env_injection is not None else None
    for target in targets or ():
        pod_set = info.pod_set(target.job_name)
        for name in target.container_names:
            yield target, name, pod_set.any_container(name) if pod_set is not None else None


def _declare_ports(info: Info, pod_set: PodSet | None) -> None:
    if pod_set is not None:
        elastic_port = () if info.node_range is None else (elastic.RENDEZVOUS_PORT,)
        pod_set.tell_local_node(PORT_VARIABLES, *MEETING_PORT, *elastic_port)
        pod_set.tell_local_node(PORT_FLAGS, *MEETING_PORT_FLAGS)


def _missing(target: EnvInjectionTarget, container: str) -> str:
    return f'envInjection target podSet "{target.job_name}" container "{container}" not found in runtime template'
