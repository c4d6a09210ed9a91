"""The types of a TrainJob's overrides: runtime patches (since v2.2), pod template overrides (v2.1), pod spec overrides
(v2.0).

These types exist for the schema alone: patches are merged as JSON, and a TrainJob holds them as JSON.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from trainwright.api.markers import IMMUTABLE, mark
from trainwright.schema.jsonobject import Json

_NAME = {"minLength": 1, "maxLength": 253}


class TemplateMetadata(msgspec.Struct):
    """The part of ObjectMeta that a template may have."""

    labels: Annotated[dict[str, str] | None, mark()] = None
    annotations: Annotated[dict[str, str] | None, mark()] = None
    finalizers: Annotated[list[str] | None, mark()] = None
    name: Annotated[str | None, mark()] = None
    namespace: Annotated[str | None, mark()] = None


class ContainerPatch(msgspec.Struct, rename="camel"):
    name: Annotated[str, mark("Name of the container of the runtime to patch.", **_NAME)]
    env: Annotated[
        list[Json] | None,
        mark("Variables to add or change.", fragment="containers[].env", maxItems=128, keys=["name"]),
    ] = None
    volume_mounts: Annotated[
        list[Json] | None,
        mark("Mounts to add or change.", fragment="containers[].volumeMounts", maxItems=128, keys=["name"]),
    ] = None
    security_context: Annotated[
        Json | None, mark("Security settings to merge.", fragment="containers[].securityContext")
    ] = None


class PodSpecPatch(msgspec.Struct, rename="camel"):
    service_account_name: Annotated[
        str | None, mark("Service account the pods run as.", maxLength=253, rules=[IMMUTABLE])
    ] = None
    volumes: Annotated[
        list[Json] | None,
        mark("Volumes to add or change.", fragment="volumes", maxItems=128, keys=["name"], rules=[IMMUTABLE]),
    ] = None
    init_containers: Annotated[
        list[Json] | None,
        mark("Init containers to patch.", shape="ContainerPatch", maxItems=64, keys=["name"], rules=[IMMUTABLE]),
    ] = None
    containers: Annotated[
        list[Json] | None,
        mark("Containers to patch.", shape="ContainerPatch", maxItems=64, keys=["name"], rules=[IMMUTABLE]),
    ] = None
    image_pull_secrets: Annotated[
        list[Json] | None,
        mark(
            "Secrets to pull images with.", fragment="imagePullSecrets", maxItems=64, keys=["name"], rules=[IMMUTABLE]
        ),
    ] = None
    security_context: Annotated[
        Json | None, mark("Security settings of the pod to merge.", fragment="securityContext", rules=[IMMUTABLE])
    ] = None
    termination_grace_period_seconds: Annotated[
        int | None, mark("Seconds a pod has to end.", format="int64", minimum=0, rules=[IMMUTABLE])
    ] = None
    node_selector: Annotated[dict[str, str] | None, mark("Labels that a node must have; merged.")] = None
    affinity: Annotated[Json | None, mark("Scheduling preferences to merge.", fragment="affinity")] = None
    tolerations: Annotated[
        list[Json] | None,
        mark("Tolerations; they replace the runtime's.", fragment="tolerations", maxItems=128, list_type="atomic"),
    ] = None
    scheduling_gates: Annotated[
        list[Json] | None,
        mark("Gates that keep the pods from being scheduled.", fragment="schedulingGates", maxItems=16, keys=["name"]),
    ] = None


class PodTemplatePatch(msgspec.Struct):
    metadata: Annotated[Json | None, mark("Labels and annotations of the pods.", shape="TemplateMetadata")] = None
    spec: Annotated[Json | None, mark("What to change in the pods.", shape="PodSpecPatch")] = None


class JobSpecPatch(msgspec.Struct):
    template: Annotated[Json | None, mark("The pod template to patch.", shape="PodTemplatePatch")] = None


class JobTemplatePatch(msgspec.Struct):
    metadata: Annotated[Json | None, mark("Labels and annotations of the Jobs.", shape="TemplateMetadata")] = None
    spec: Annotated[Json | None, mark("What to change in the Jobs.", shape="JobSpecPatch")] = None


class ReplicatedJobPatch(msgspec.Struct):
    name: Annotated[str, mark("Name of the replicated job of the runtime to patch.", **_NAME)]
    template: Annotated[Json | None, mark("The Job template to patch.", shape="JobTemplatePatch")] = None


class JobSetSpecPatch(msgspec.Struct, rename="camel"):
    replicated_jobs: Annotated[
        list[Json] | None,
        mark("Replicated jobs to patch, by name.", shape="ReplicatedJobPatch", maxItems=100, keys=["name"]),
    ] = None


class JobSetTemplatePatch(msgspec.Struct):
    metadata: Annotated[Json | None, mark("Labels and annotations of the JobSet.", shape="TemplateMetadata")] = None
    spec: Annotated[Json | None, mark("What to change in the JobSet.", shape="JobSetSpecPatch")] = None


class TrainingRuntimeSpecPatch(msgspec.Struct):
    template: Annotated[Json | None, mark("The JobSet template to patch.", shape="JobSetTemplatePatch")] = None


class RuntimePatch(msgspec.Struct, rename="camel"):
    """One manager's changes to the runtime of a TrainJob."""

    manager: Annotated[
        str, mark('Who owns this patch, such as "example.io/team"; one entry per manager.', rules=[IMMUTABLE], **_NAME)
    ]
    time: Annotated[str | None, mark("When the patch last changed; kept by admission.", format="date-time")] = None
    training_runtime_spec: Annotated[
        Json | None, mark("What to change, in the shape of the runtime's spec.", shape="TrainingRuntimeSpecPatch")
    ] = None


# Older generations


class TargetJob(msgspec.Struct):
    name: Annotated[str, mark("Name of a replicated job of the runtime.", minLength=1)]


class ContainerOverride(msgspec.Struct, rename="camel"):
    name: Annotated[str, mark("Name of the container to change.", minLength=1)]
    env: Annotated[list[Json] | None, mark(fragment="containers[].env", keys=["name"])] = None
    volume_mounts: Annotated[list[Json] | None, mark(fragment="containers[].volumeMounts", keys=["name"])] = None


class PodSpecOverrideFields(msgspec.Struct, rename="camel"):
    """The fields that a v2.0 override may set."""

    service_account_name: Annotated[str | None, mark()] = None
    node_selector: Annotated[dict[str, str] | None, mark()] = None
    tolerations: Annotated[list[Json] | None, mark(fragment="tolerations", list_type="atomic")] = None
    volumes: Annotated[list[Json] | None, mark(fragment="volumes", keys=["name"])] = None
    init_containers: Annotated[list[Json] | None, mark(shape="ContainerOverride", keys=["name"])] = None
    containers: Annotated[list[Json] | None, mark(shape="ContainerOverride", keys=["name"])] = None
    scheduling_gates: Annotated[list[Json] | None, mark(fragment="schedulingGates", keys=["name"])] = None


class PodTemplateSpecOverride(PodSpecOverrideFields, rename="camel"):
    """The fields that a v2.1 override may set: two more."""

    affinity: Annotated[Json | None, mark(fragment="affinity")] = None
    image_pull_secrets: Annotated[list[Json] | None, mark(fragment="imagePullSecrets", keys=["name"])] = None


class PodSpecOverride(PodSpecOverrideFields, rename="camel"):
    """A v2.0 override: the fields stand beside the targets."""

    target_jobs: Annotated[
        list[Json] | None,
        mark("Replicated jobs this applies to.", shape="TargetJob", list_type="atomic", required=True),
    ] = None


class PodTemplateOverride(msgspec.Struct, rename="camel"):
    """A v2.1 override: metadata and spec for the pod templates of the targets."""

    target_jobs: Annotated[
        list[Json], mark("Replicated jobs this applies to.", shape="TargetJob", list_type="atomic", required=True)
    ]
    metadata: Annotated[Json | None, mark("Labels and annotations of the pods.", shape="TemplateMetadata")] = None
    spec: Annotated[Json | None, mark("What to change in the pods.", shape="PodTemplateSpecOverride")] = None
