"""What a TrainJob's overrides may say, in all three generations. A part of the JobSet plugin.

Overrides may only name jobs and containers that the runtime's own template has (judged before anything is
merged), may not set variables on the containers that the TrainJob's own API serves, and change only while the job is
suspended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainwright.api.trainjob import TrainJob, TrainJobSpec
from trainwright.pipeline.info import Info
from trainwright.pipeline.podset import (
    DATASET_INITIALIZER,
    MODEL_INITIALIZER,
    NODE,
    pod_spec_of,
)
from trainwright.pipeline.sparse import sparse
from trainwright.pipeline.typed import invalid_value, json_of
from trainwright.schema.errors import FieldError, duplicate, forbidden, invalid
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults

SERVED_BY_API = (DATASET_INITIALIZER, MODEL_INITIALIZER, NODE)
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_path = re.compile(_PATH).fullmatch


class Generation(NamedTuple):
    """One spelling of overrides: its field, its type, its name in messages, and whom a missing job is called."""

    attribute: str
    field: str
    struct: str
    title: str
    missing_job: str


PATCHES = Generation(
    "runtime_patches",
    "spec.runtimePatches",
    "trainer.RuntimePatch",
    "RuntimePatches",
    "must not have replicated job that doesn't exist in the runtime job template",
)
TEMPLATE_OVERRIDES = Generation(
    "pod_template_overrides",
    "spec.podTemplateOverrides",
    "trainer.PodTemplateOverride",
    "PodTemplateOverrides",
    "must not have targetJob that doesn't exist in the runtime job template",
)
SPEC_OVERRIDES = TEMPLATE_OVERRIDES._replace(
    attribute="pod_spec_overrides",
    field="spec.podSpecOverrides",
    struct="trainer.PodSpecOverride",
    title="PodSpecOverrides",
)
GENERATIONS = (SPEC_OVERRIDES, TEMPLATE_OVERRIDES, PATCHES)


def validate_overrides(info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError | str]:
    """Faults of every override, and a warning for each older spelling."""
    known = _names_of_template(info)
    for generation in GENERATIONS:
        items = _items(info.job_spec, generation)
        if (
            old is not None
            and old.spec is not None
            and _content(info.job_spec, generation) != _content(old.spec, generation)
        ):
            yield from _update_faults(info, job, old, generation)
        for item in items:
            yield from _item_faults(item, items, generation, known)
        if items and generation is not PATCHES:
            yield f"{generation.field} is an older spelling and still works; the modern one is spec.runtimePatches"
    yield from _repeated_targets(info.job_spec)
    for field, values in (("labels", info.job_spec.labels), ("annotations", info.job_spec.annotations)):
        if values:
            modern = f"spec.runtimePatches[].trainingRuntimeSpec.template.metadata.{field}"
            yield f"spec.{field} is an older spelling and still works; the modern one is {modern}"


def _items(spec: TrainJobSpec, generation: Generation) -> list[Json]:
    return getattr(spec, generation.attribute) or []


def _content(spec: TrainJobSpec, generation: Generation) -> list[Json]:
    """Overrides such that two spellings of the same are equal."""
    return [sparse(item, generation.struct) for item in _items(spec, generation)]


class Names(NamedTuple):
    """The containers of one job."""

    init_containers: set[str]
    containers: set[str]


def _names_of_template(info: Info) -> dict[str, Names]:
    """The containers of each job of the runtime's template, as its author wrote it."""
    template = info.runtime.spec.template if info.runtime.spec else None
    jobs: list[Json] = ((template.spec if template else None) or {}).get("replicatedJobs") or []
    known: dict[str, Names] = {}
    for job in jobs:
        pod = pod_spec_of(job)
        names = ({c.get("name", "") for c in pod.get(field) or ()} for field in ("initContainers", "containers"))
        known[job["name"]] = Names(*names)
    return known


def _item_faults(
    item: Json, items: list[Json], generation: Generation, known: dict[str, Names]
) -> Iterator[FieldError]:
    if generation is PATCHES:
        yield from _manager_faults(str(item.get("manager", "")))

    def fault(detail: str) -> FieldError:
        return invalid_value(generation.field, json_of(items, generation.struct), detail)

    for job, pod_spec in _pod_specs(item, generation):
        if job not in known:
            yield fault(generation.missing_job)
            continue
        for container in pod_spec.get("initContainers") or ():
            if container.get("name") not in known[job].init_containers:
                yield fault(f"must not have initContainer that doesn't exist in the runtime job {job}")
        for container in pod_spec.get("containers") or ():
            if container.get("name") not in known[job].containers:
                yield fault(f"must not have container that doesn't exist in the runtime job {job}")
            elif container.get("env") and container["name"] in SERVED_BY_API:
                yield fault(f"must not have envs for the {', '.join(SERVED_BY_API)} containers")


def _pod_specs(item: Json, generation: Generation) -> Iterator[tuple[str, Json]]:
    """Each job an override touches, with the pod spec it brings."""
    if generation is PATCHES:
        template = (item.get("trainingRuntimeSpec") or {}).get("template") or {}
        for job in (template.get("spec") or {}).get("replicatedJobs") or ():
            yield job.get("name", ""), pod_spec_of(job)
        return
    pod_spec = item.get("spec") or {} if generation is TEMPLATE_OVERRIDES else item
    for target in item.get("targetJobs") or ():
        yield target.get("name", ""), pod_spec


def _manager_faults(manager: str) -> Iterator[FieldError]:
    """A manager is a domain, a slash and a path."""
    field = "spec.runtimePatches.manager"
    domain, _, path = manager.partition("/")
    if not domain or not path:
        yield invalid(field, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    for fault in dns1123_subdomain_faults(domain):
        yield invalid(field, domain, fault)
    if not _path(path):
        yield invalid(field, path, f"Invalid path (regex used for validation is '{_PATH}')")


def _repeated_targets(spec: TrainJobSpec) -> Iterator[FieldError]:
    """v2.0 allowed one override for a job."""
    seen: set[Any] = set()
    for item in spec.pod_spec_overrides or ():
        for target in item.get("targetJobs") or ():
            if target.get("name") in seen:
                yield duplicate(SPEC_OVERRIDES.field, target.get("name"))
            seen.add(target.get("name"))


def _update_faults(info: Info, job: TrainJob, old: TrainJob, generation: Generation) -> Iterator[FieldError]:
    """A running job's pods are not changed under it."""
    patches = generation is PATCHES
    if not (job.is_suspended or (patches and old.is_suspended)):
        when = "suspended before or after the update" if patches else "suspended"
        yield forbidden(generation.field, f"{generation.title} can only be modified when the TrainJob is {when}")
        return
    workload = info.observed.workload
    for item in workload.status.jobs if workload is not None else ():
        if workload is not None and item.active > 0:
            whose = f"the {workload.resource.kind}'s ReplicatedJob {item.name}"
            detail = f"{generation.title} cannot be modified when {whose} is still active"
            yield forbidden(generation.field, detail)
