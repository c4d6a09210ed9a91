"""TrainingRuntime and ClusterTrainingRuntime: templates for TrainJobs.

Both kinds have the same spec. The JobSet template stays plain JSON. The types have the fields of all releases from v2.0
to v2.3:
`torch.num_proc_per_node` and `torch.elastic_policy` come from the older releases.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from trainwright.api.markers import mark, rule
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import TRAINING_RUNTIMES
from trainwright.schema.jsonobject import Json

_NOT_NODE = rule(
    "!self.exists(c, c == 'node')",
    "containerNames must not include the main node container because PET_* envs are always injected into it",
)
_TORCH_PROCESSES = rule(
    "type(self) == string ? self in ['auto', 'cpu', 'gpu'] : self > 0",
    "NumProcPerNode must be equal to auto, cpu, gpu, or int value",
)
_ONE_POLICY = rule(
    "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost), has(self.flux)].filter(x, x).size() <= 1",
    "Only one of the policy can be configured",
)
_NODES_OR_ELASTIC = rule(
    "!(has(self.numNodes) && has(self.torch) && has(self.torch.elasticPolicy))",
    "numNodes should not be set if torch.elasticPolicy is configured",
)
_ONE_SCHEDULER = rule(
    "[has(self.coscheduling), has(self.volcano), has(self.kubernetes)].filter(x, x).size() <= 1",
    "at most one of coscheduling, volcano and kubernetes can be configured",
)


class EnvInjectionTarget(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    job_name: Annotated[str, mark("Name of the replicated job.", minLength=1, maxLength=253)]
    container_names: Annotated[
        list[str],
        mark(
            "Containers beside node that get the PET_* variables.",
            minItems=1,
            maxItems=8,
            list_type="set",
            items={"maxLength": 63},
            rules=[_NOT_NODE],
        ),
    ]


class EnvInjection(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    targets: Annotated[list[EnvInjectionTarget] | None, mark("Which containers.", maxItems=16, keys=["jobName"])] = None


class ElasticPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Between how many nodes a job may grow and shrink while it trains."""

    max_restarts: Annotated[
        int | None,
        mark("How often torchrun restarts its workers, and how often each node may fail; 3 if unset."),
    ] = None
    min_nodes: Annotated[int | None, mark("The fewest nodes that train; 1 if unset.")] = None
    max_nodes: Annotated[
        int | None, mark("The most nodes that train; if unset, as many as the TrainJob begins with.")
    ] = None
    metrics: Annotated[
        list[Json] | None,
        mark(
            "Metrics by which a HorizontalPodAutoscaler changes the number of nodes.",
            fragment="kubernetes:autoscaling.v2.MetricSpec",
            list_type="atomic",
        ),
    ] = None


class TorchPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    env_injection: Annotated[EnvInjection | None, mark("Further containers that get the PET_* variables.")] = None
    num_proc_per_node: Annotated[
        int | str | None,
        mark("Processes per node, unless the TrainJob sets them. From v2.0 and v2.1.", rules=[_TORCH_PROCESSES]),
    ] = None
    elastic_policy: Annotated[
        ElasticPolicy | None, mark("Elastic training: nodes may join and leave while the job trains.")
    ] = None


class MPIPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Defaults are those of the schema. An empty implementation means OpenMPI."""

    num_proc_per_node: Annotated[
        int,
        mark(
            "Processes on each node.",
            default=1,
            rules=[rule("self >= 1", "NumProcPerNode in mpiPolicy must be >= 1")],
        ),
    ] = 1
    mpi_implementation: Annotated[
        str,
        mark(
            "Which MPI the image has; empty means OpenMPI.", default="OpenMPI", enum=["OpenMPI", "Intel", "MPICH", ""]
        ),
    ] = "OpenMPI"
    ssh_auth_mount_path: Annotated[
        str, mark("Where the SSH keys are mounted.", default="/root/.ssh", maxLength=4096)
    ] = "/root/.ssh"
    run_launcher_as_node: Annotated[bool, mark("Whether the launcher trains too.", default=False)] = False


class JAXPolicy(msgspec.Struct, frozen=True):
    """Chooses JAX by its presence; it has no fields."""


class XGBoostPolicy(msgspec.Struct, frozen=True):
    """Chooses XGBoost by its presence; it has no fields."""


class FluxPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    num_proc_per_node: Annotated[
        int,
        mark(
            "Processes on each node.",
            default=1,
            rules=[rule("self >= 1", "NumProcPerNode in fluxPolicy must be >= 1")],
        ),
    ] = 1


class MLPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The number of nodes, and at most one framework."""

    num_nodes: Annotated[int | None, mark("Number of nodes, unless the TrainJob sets it.")] = None
    torch: Annotated[TorchPolicy | None, mark("PyTorch, started by torchrun.")] = None
    mpi: Annotated[MPIPolicy | None, mark("MPI, started by a launcher over SSH.")] = None
    jax: Annotated[JAXPolicy | None, mark("JAX.")] = None
    xgboost: Annotated[XGBoostPolicy | None, mark("XGBoost.")] = None
    flux: Annotated[FluxPolicy | None, mark("Flux Framework.")] = None


class CoschedulingPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    schedule_timeout_seconds: Annotated[int, mark("Seconds the gang may wait to be scheduled.", default=60)] = 60


class NetworkTopology(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    mode: Annotated[str, mark("Whether the tier is required or preferred.", default="hard", enum=["hard", "soft"])] = (
        "hard"
    )
    highest_tier_allowed: Annotated[
        int, mark("Highest network tier that the nodes may span.", default=1, format="")
    ] = 1


class VolcanoPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    network_topology: Annotated[NetworkTopology | None, mark("Network topology that the nodes need.")] = None


class KubernetesGangPolicy(msgspec.Struct, frozen=True):
    """Chooses Kubernetes' own gang scheduling by its presence; it has no fields."""


class PodGroupPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    coscheduling: Annotated[CoschedulingPolicy | None, mark("The scheduler-plugins' coscheduling.")] = None
    volcano: Annotated[VolcanoPolicy | None, mark("Volcano.")] = None
    kubernetes: Annotated[KubernetesGangPolicy | None, mark("Kubernetes' own gang scheduling, alpha in 1.36.")] = None


class JobSetTemplate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The template of the JobSet: metadata (labels, annotations) and spec, as JSON."""

    metadata: Annotated[Json | None, mark("Labels and annotations of the JobSet.", shape="TemplateMetadata")] = None
    spec: Annotated[Json | None, mark("Spec of the JobSet.", fragment="jobset")] = None


class TrainingRuntimeSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    ml_policy: Annotated[
        MLPolicy | None, mark("How training is distributed.", rules=[_ONE_POLICY, _NODES_OR_ELASTIC])
    ] = None
    pod_group_policy: Annotated[
        PodGroupPolicy | None, mark("Gang scheduler that starts the pods together.", rules=[_ONE_SCHEDULER])
    ] = None
    template: Annotated[JobSetTemplate | None, mark("Template of the JobSet of every TrainJob.", minProperties=1)] = (
        None
    )


class TrainingRuntime(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A runtime of either kind; `is_cluster_scoped` tells which."""

    # Factories, because a plain default would be left out of the JSON.
    api_version: str = msgspec.field(default_factory=lambda: TRAINING_RUNTIMES.api_version)
    kind: str = msgspec.field(default_factory=lambda: TRAINING_RUNTIMES.kind)
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[TrainingRuntimeSpec | None, mark("The runtime.", minProperties=1)] = None

    @property
    def is_cluster_scoped(self) -> bool:
        return self.kind == "ClusterTrainingRuntime"


ClusterTrainingRuntime = TrainingRuntime


def runtime_from(value: Json) -> TrainingRuntime:
    """The typed runtime in plain JSON. Raises `msgspec.ValidationError` with the path of a wrong type."""
    return msgspec.convert(value, TrainingRuntime)
