"""TrainJob: what a user submits, as every release from v2.0 to v2.3 spells it.

In: JSON that the API server has validated. Out: frozen Structs; pod-shaped parts (env, volumes, patches) stay plain
JSON, so that no field we do not know is lost. The older spellings live beside the modern ones: `pod_spec_overrides`
(v2.0), `pod_template_overrides` (v2.1), `labels` and `annotations` on the spec, a string `num_proc_per_node`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .metadata import Condition, ObjectMeta, find_condition, is_true
from .resources import TRAIN_JOBS, TRAINER_GROUP

JSON = dict[str, Any]
IntOrString = int | str

CONTROLLER_NAME: Final = "trainer.kubeflow.org/trainjob-controller"
MULTIKUEUE_NAME: Final = "kueue.x-k8s.io/multikueue"

SUSPENDED: Final = "Suspended"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"


class RuntimeRef(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    # Defaults of the schema, so that an object which never met it reads the same.
    api_group: str = TRAINER_GROUP
    kind: str = "ClusterTrainingRuntime"

    @property
    def group_kind(self) -> str:
        """The key messages use: `ClusterTrainingRuntime.trainer.kubeflow.org`."""
        return f"{self.kind}.{self.api_group}"


class InitializerStep(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A dataset or a model to fetch before training."""

    storage_uri: str | None = None
    env: list[JSON] | None = None
    secret_ref: JSON | None = None


class Initializer(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    dataset: InitializerStep | None = None
    model: InitializerStep | None = None


class Trainer(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the trainer's container gets in place of the runtime's values."""

    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[JSON] | None = None
    num_nodes: int | None = None
    resources_per_node: JSON | None = None
    num_proc_per_node: IntOrString | None = None


class TrainJobSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    runtime_ref: RuntimeRef
    initializer: Initializer | None = None
    trainer: Trainer | None = None
    runtime_patches: list[JSON] | None = None
    pod_template_overrides: list[JSON] | None = None
    pod_spec_overrides: list[JSON] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    managed_by: str | None = None


class JobStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How many Jobs of one replicatedJob are in which state; every member is always written."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0


class Metric(msgspec.Struct, frozen=True):
    name: str
    value: str


class TrainerStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Progress that the training code reported itself."""

    last_updated_time: str | None = None
    progress_percentage: int | None = None
    estimated_remaining_seconds: int | None = None
    metrics: list[Metric] | None = None


class TrainJobStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    conditions: list[Condition] | None = None
    jobs_status: list[JobStatus] | None = None
    trainer_status: TrainerStatus | None = None
    state: str | None = None
    message: str | None = None
    runtime_revision: str | None = None


class TrainJob(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    # Factories, because a plain default would be left out of the JSON.
    api_version: str = msgspec.field(default_factory=lambda: TRAIN_JOBS.api_version)
    kind: str = msgspec.field(default_factory=lambda: TRAIN_JOBS.kind)
    metadata: ObjectMeta = ObjectMeta()
    # Absent when a client sends no spec at all; admission refuses such a job, so most code may assert it.
    spec: TrainJobSpec | None = None
    status: TrainJobStatus | None = None

    @property
    def conditions(self) -> list[Condition]:
        return (self.status.conditions if self.status else None) or []

    def condition(self, type: str) -> Condition | None:
        return find_condition(self.conditions, type)

    @property
    def is_suspended(self) -> bool:
        """Asked to be suspended (its spec, not its state)."""
        return bool(self.spec and self.spec.suspend)

    @property
    def is_finished(self) -> bool:
        return is_true(self.conditions, COMPLETE) or is_true(self.conditions, FAILED)

    @property
    def is_being_deleted(self) -> bool:
        return self.metadata.is_being_deleted

    @property
    def is_ours(self) -> bool:
        """Not handed over to another controller by `managedBy`."""
        return self.spec is None or self.spec.managed_by in (None, CONTROLLER_NAME)


def trainjob_from(value: JSON) -> TrainJob:
    """The typed TrainJob of plain JSON; raises `msgspec.ValidationError` with the path of a wrong type."""
    return msgspec.convert(value, TrainJob)
