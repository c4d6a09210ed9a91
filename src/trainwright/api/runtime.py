"""TrainingRuntime and ClusterTrainingRuntime: the templates that platform teams write.

One spec type for both kinds. The JobSet template stays plain JSON. The union of v2.0 to v2.3:
`torch.num_proc_per_node` and `torch.elastic_policy` come from the older releases.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .metadata import ObjectMeta
from .resources import TRAINING_RUNTIMES

JSON = dict[str, Any]


class EnvInjectionTarget(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    job_name: str
    container_names: list[str]


class EnvInjection(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    targets: list[EnvInjectionTarget] | None = None


class ElasticPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    max_restarts: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    metrics: list[JSON] | None = None


class TorchPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    env_injection: EnvInjection | None = None
    num_proc_per_node: int | str | None = None
    elastic_policy: ElasticPolicy | None = None


class MPIPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Defaults are those of the schema. An empty implementation means OpenMPI."""

    num_proc_per_node: int = 1
    mpi_implementation: str = "OpenMPI"
    ssh_auth_mount_path: str = "/root/.ssh"
    run_launcher_as_node: bool = False


class JAXPolicy(msgspec.Struct, frozen=True):
    """No members: its presence chooses JAX."""


class XGBoostPolicy(msgspec.Struct, frozen=True):
    """No members: its presence chooses XGBoost."""


class FluxPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    num_proc_per_node: int = 1


class MLPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How many nodes, and at most one framework."""

    num_nodes: int | None = None
    torch: TorchPolicy | None = None
    mpi: MPIPolicy | None = None
    jax: JAXPolicy | None = None
    xgboost: XGBoostPolicy | None = None
    flux: FluxPolicy | None = None


class CoschedulingPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    schedule_timeout_seconds: int = 60


class NetworkTopology(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    mode: str = "hard"
    highest_tier_allowed: int = 1


class VolcanoPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    network_topology: NetworkTopology | None = None


class PodGroupPolicy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    coscheduling: CoschedulingPolicy | None = None
    volcano: VolcanoPolicy | None = None


class JobSetTemplate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The JobSet to be: its metadata (labels, annotations) and its spec, both as written."""

    metadata: JSON | None = None
    spec: JSON | None = None


class TrainingRuntimeSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    ml_policy: MLPolicy | None = None
    pod_group_policy: PodGroupPolicy | None = None
    template: JobSetTemplate | None = None


class TrainingRuntime(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Either kind; `is_cluster_scoped` tells which."""

    # Factories, because a plain default would be left out of the JSON.
    api_version: str = msgspec.field(default_factory=lambda: TRAINING_RUNTIMES.api_version)
    kind: str = msgspec.field(default_factory=lambda: TRAINING_RUNTIMES.kind)
    metadata: ObjectMeta = ObjectMeta()
    spec: TrainingRuntimeSpec | None = None

    @property
    def is_cluster_scoped(self) -> bool:
        return self.kind == "ClusterTrainingRuntime"


ClusterTrainingRuntime = TrainingRuntime


def runtime_from(value: JSON) -> TrainingRuntime:
    """The typed runtime of plain JSON; raises `msgspec.ValidationError` with the path of a wrong type."""
    return msgspec.convert(value, TrainingRuntime)
