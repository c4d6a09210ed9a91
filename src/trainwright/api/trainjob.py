"""TrainJob, with the fields of all releases from v2.0 to v2.3.

In: JSON that the API server has validated. Out: frozen Structs; parts of pods (env, volumes, patches) stay plain JSON,
so that no unknown field is lost. Fields of older releases stand beside the current ones: `pod_spec_overrides` (v2.0),
`pod_template_overrides` (v2.1), `labels` and `annotations` on the spec, a string `num_proc_per_node`.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from trainwright.api.markers import IMMUTABLE, mark, rule
from trainwright.api.metadata import Condition, ObjectMeta, find_condition, is_true
from trainwright.api.resources import TRAIN_JOBS, TRAINER_GROUP
from trainwright.schema.jsonobject import Json

IntOrString = int | str

CONTROLLER_NAME: Final = "trainer.kubeflow.org/trainjob-controller"
MULTIKUEUE_NAME: Final = "kueue.x-k8s.io/multikueue"

SUSPENDED: Final = "Suspended"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"


_STORAGE_URI = rule(
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
    "storageUri may be empty, or it must be a valid URI (scheme://...)",
)
_ENV = "containers[].env"


class RuntimeRef(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: Annotated[str, mark("Name of the runtime.", minLength=1, maxLength=253)]
    # The schema's defaults, for objects that were not defaulted by it.
    api_group: Annotated[str, mark("Group of the runtime's kind.", maxLength=253, default=TRAINER_GROUP)] = (
        TRAINER_GROUP
    )
    kind: Annotated[
        str,
        mark(
            "ClusterTrainingRuntime, or TrainingRuntime for one in the TrainJob's own namespace.",
            maxLength=253,
            default="ClusterTrainingRuntime",
        ),
    ] = "ClusterTrainingRuntime"

    @property
    def group_kind(self) -> str:
        """Kind and group as messages show them: `ClusterTrainingRuntime.trainer.kubeflow.org`."""
        return f"{self.kind}.{self.api_group}"


class InitializerStep(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A dataset or a model to fetch before training."""

    storage_uri: Annotated[
        str | None,
        mark(
            "Where to fetch it from, such as hf://org/name or s3://bucket/path.", maxLength=2048, rules=[_STORAGE_URI]
        ),
    ] = None
    env: Annotated[
        list[Json] | None, mark("Variables of the initializer.", fragment=_ENV, maxItems=128, keys=["name"])
    ] = None
    secret_ref: Annotated[
        Json | None, mark("Secret with the credentials to fetch it.", fragment="imagePullSecrets[]")
    ] = None


class Initializer(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    dataset: Annotated[InitializerStep | None, mark("The dataset to fetch.")] = None
    model: Annotated[InitializerStep | None, mark("The pre-trained model to fetch.")] = None


class Trainer(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Values for the trainer's container, in place of the runtime's."""

    image: Annotated[str | None, mark("Image of the container.", maxLength=500)] = None
    command: Annotated[
        list[str] | None,
        mark("Command of the container.", maxItems=128, list_type="atomic", items={"maxLength": 1048576}),
    ] = None
    args: Annotated[
        list[str] | None,
        mark("Arguments of the command.", maxItems=128, list_type="atomic", items={"maxLength": 1048576}),
    ] = None
    env: Annotated[
        list[Json] | None, mark("Variables of the container.", fragment=_ENV, maxItems=128, keys=["name"])
    ] = None
    num_nodes: Annotated[int | None, mark("Number of nodes.", minimum=0)] = None
    resources_per_node: Annotated[
        Json | None, mark("Resources that each node requests.", fragment="containers[].resources")
    ] = None
    num_proc_per_node: Annotated[
        IntOrString | None,
        mark(
            "Number of processes on each node. auto, cpu and gpu are accepted for older manifests.",
            rules=[
                rule("type(self) == string || self >= 1", "numProcPerNode must be greater than or equal to 1"),
                # A schema that allows numbers and text cannot have the format of a number.
                rule(
                    "type(self) == string || self <= 2147483647",
                    "numProcPerNode must be less than or equal to 2147483647",
                ),
            ],
        ),
    ] = None


class TrainJobSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    runtime_ref: Annotated[RuntimeRef, mark("The runtime to train with.", rules=[IMMUTABLE])]
    initializer: Annotated[Initializer | None, mark("What to fetch before training.", rules=[IMMUTABLE])] = None
    # Immutable but for the nodes of an elastic job: by a rule of the whole object, which sees the status (crds.py).
    trainer: Annotated[Trainer | None, mark("The container that trains, and on how many nodes.")] = None
    runtime_patches: Annotated[
        list[Json] | None,
        mark("Changes to the runtime for this job alone.", shape="RuntimePatch", maxItems=16, keys=["manager"]),
    ] = None
    pod_template_overrides: Annotated[
        list[Json] | None,
        mark(
            "Spelling of v2.1; runtimePatches is the modern one.",
            shape="PodTemplateOverride",
            list_type="atomic",
        ),
    ] = None
    pod_spec_overrides: Annotated[
        list[Json] | None,
        mark("Spelling of v2.0; runtimePatches is the modern one.", shape="PodSpecOverride", list_type="atomic"),
    ] = None
    labels: Annotated[
        dict[str, str] | None, mark("Labels of the JobSet. Spelling of v2.0; runtimePatches is the modern one.")
    ] = None
    annotations: Annotated[
        dict[str, str] | None, mark("Annotations of the JobSet. Spelling of v2.0; runtimePatches is the modern one.")
    ] = None
    suspend: Annotated[
        bool | None, mark("Whether the job is suspended: true ends its pods, false starts them.", default=False)
    ] = None
    active_deadline_seconds: Annotated[
        int | None,
        mark("Seconds the job may run before it fails.", format="int64", minimum=1, rules=[IMMUTABLE]),
    ] = None
    managed_by: Annotated[
        str | None,
        mark(
            "Which controller runs the job.",
            maxLength=253,
            default=CONTROLLER_NAME,
            rules=[
                rule(
                    f"self in ['{CONTROLLER_NAME}', '{MULTIKUEUE_NAME}']",
                    f"ManagedBy must be {CONTROLLER_NAME} or {MULTIKUEUE_NAME} if set",
                ),
                IMMUTABLE,
            ],
        ),
    ] = None


class JobStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The number of Jobs of one replicatedJob in each state. Every field is always written."""

    name: Annotated[str, mark("Name of the replicated job.", minLength=1, maxLength=253)]
    ready: Annotated[int, mark("Jobs whose pods are ready or have succeeded.", minimum=0, required=True)] = 0
    succeeded: Annotated[int, mark("Jobs that have succeeded.", minimum=0, required=True)] = 0
    failed: Annotated[int, mark("Jobs that failed.", minimum=0, required=True)] = 0
    active: Annotated[int, mark("Jobs with pods that run or wait to.", minimum=0, required=True)] = 0
    suspended: Annotated[int, mark("Jobs that are suspended.", minimum=0, required=True)] = 0


class Metric(msgspec.Struct, frozen=True, gc=False):
    name: Annotated[str, mark("Name of the metric, such as loss.", minLength=1, maxLength=64)]
    value: Annotated[str, mark("Its last value.", minLength=1, maxLength=64)]


class TrainerStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Progress that the training code reported."""

    last_updated_time: Annotated[str | None, mark("When progress was last reported.", format="date-time")] = None
    progress_percentage: Annotated[int | None, mark("Progress in percent.", minimum=0, maximum=100)] = None
    estimated_remaining_seconds: Annotated[int | None, mark("Estimated seconds until the end.", minimum=0)] = None
    metrics: Annotated[list[Metric] | None, mark("Metrics of training.", maxItems=256, list_type="atomic")] = None


class ElasticStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The nodes of a job that may grow and shrink while it trains. Every field is always written."""

    min_nodes: Annotated[int, mark("The fewest nodes that train.", minimum=1, required=True)] = 1
    max_nodes: Annotated[int, mark("The most nodes that train.", minimum=1, required=True)] = 1
    wanted_nodes: Annotated[int, mark("Nodes that the job asks for.", minimum=0, required=True)] = 0
    nodes: Annotated[int, mark("Nodes whose pods exist.", minimum=0, required=True)] = 0
    ready_nodes: Annotated[int, mark("Nodes whose pods are ready.", minimum=0, required=True)] = 0
    selector: Annotated[str, mark("Label selector of the nodes' pods.", maxLength=1024, required=True)] = ""


class TrainJobStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    conditions: Annotated[
        list[Condition] | None, mark("Suspended, Complete and Failed.", maxItems=8, keys=["type"])
    ] = None
    jobs_status: Annotated[
        list[JobStatus] | None, mark("The replicated jobs' states.", maxItems=100, keys=["name"])
    ] = None
    trainer_status: Annotated[
        TrainerStatus | None,
        mark(
            "Progress reported by the training code.",
            rules=[rule("has(self.lastUpdatedTime)", "lastUpdatedTime is required when trainerStatus is present")],
        ),
    ] = None
    state: Annotated[
        str | None, mark("State of the job: Pending, Running, Suspended, Complete or Failed.", maxLength=64)
    ] = None
    message: Annotated[
        str | None, mark("A sentence about the state: what the job waits for, or what went wrong.", maxLength=32768)
    ] = None
    runtime_revision: Annotated[
        str | None, mark("ControllerRevision that holds the runtime as this job uses it.", maxLength=253)
    ] = None
    workload_uid: Annotated[
        str | None,
        mark("The uid of the object that runs the pods. One that vanished is not built again unseen.", maxLength=128),
    ] = msgspec.field(default=None, name="workloadUID")
    workload_plugin: Annotated[
        str | None,
        mark("The plugin that built the workload, if it does not ship with Trainwright.", maxLength=253),
    ] = None
    elastic: Annotated[
        ElasticStatus | None, mark("The nodes of an elastic job. While it is there, spec.trainer.numNodes may change.")
    ] = None


class TrainJob(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    # Factories, because a plain default would be left out of the JSON.
    api_version: str = msgspec.field(default_factory=lambda: TRAIN_JOBS.api_version)
    kind: str = msgspec.field(default_factory=lambda: TRAIN_JOBS.kind)
    metadata: ObjectMeta = ObjectMeta()
    # Absent when a client sends no spec. Admission refuses such a job, so most code may assume that it is there.
    spec: Annotated[TrainJobSpec | None, mark("What to train, and with which runtime.")] = None
    status: Annotated[TrainJobStatus | None, mark("State of the job.", minProperties=1)] = None

    @property
    def conditions(self) -> list[Condition]:
        return (self.status.conditions if self.status else None) or []

    def condition(self, type: str) -> Condition | None:
        return find_condition(self.conditions, type)

    @property
    def is_suspended(self) -> bool:
        """Whether the spec asks for suspension."""
        return bool(self.spec and self.spec.suspend)

    @property
    def is_finished(self) -> bool:
        conditions = self.status.conditions if self.status is not None else None
        return bool(conditions) and (is_true(conditions, COMPLETE) or is_true(conditions, FAILED))

    @property
    def is_being_deleted(self) -> bool:
        return self.metadata.is_being_deleted

    @property
    def is_ours(self) -> bool:
        """Whether this operator runs the job: `managedBy` names no other controller."""
        return self.spec is None or self.spec.managed_by in (None, CONTROLLER_NAME)


def trainjob_from(value: Json) -> TrainJob:
    """The typed TrainJob in plain JSON. Raises `msgspec.ValidationError` with the path of a wrong type."""
    return msgspec.convert(value, TrainJob)
