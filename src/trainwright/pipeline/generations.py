"""Three generations of overrides, brought to one form and merged into the template.

v2.0 had `podSpecOverrides`, v2.1 `podTemplateOverrides`, both with `labels` and `annotations` on the spec; since v2.2
there are `runtimePatches`. Each entry becomes a `Patch`: a partial JobSet template. Legacy entries come first,
then the modern ones, each kind in its own order; a later patch wins field by field. The merge is Kubernetes'
strategic merge.

In: a TrainJob's spec and the runtime's template. Out: patches in order, and `merge`, which lays one over a JobSet spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwright.api.trainjob import TrainJobSpec
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.podset import pod_spec_of
from trainwright.pipeline.provenance import OVERRIDE, PATCH, Origin
from trainwright.pipeline.sparse import sparse
from trainwright.schema.jsonobject import Json
from trainwright.schema.strategic import MergeField, StrategicMergeError, strategic_merge


class Patch(NamedTuple):
    """A partial JobSet template, and where it was written."""

    origin: Origin
    labels: Json
    annotations: Json
    spec: Json
    """A partial JobSet spec; empty when only metadata is set."""


def patches_of(spec: TrainJobSpec, job_names: list[str]) -> Iterator[Patch]:
    """Every override of a TrainJob as a patch, in the order they apply."""
    if spec.labels:
        yield Patch(Origin(OVERRIDE, "labels", "spec.labels"), spec.labels, {}, {})
    if spec.annotations:
        yield Patch(Origin(OVERRIDE, "annotations", "spec.annotations"), {}, spec.annotations, {})
    for index, item in enumerate(spec.pod_spec_overrides or ()):
        pod_spec = {key: value for key, value in item.items() if key != "targetJobs"}
        origin = Origin(OVERRIDE, "podSpecOverrides", f"spec.podSpecOverrides[{index}]")
        yield _for_targets(origin, item, {"spec": pod_spec}, job_names)
    for index, item in enumerate(spec.pod_template_overrides or ()):
        metadata = item.get("metadata") or {}
        kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
        template = {"spec": item.get("spec") or {}} | ({"metadata": kept} if kept else {})
        origin = Origin(OVERRIDE, "podTemplateOverrides", f"spec.podTemplateOverrides[{index}]")
        yield _for_targets(origin, item, template, job_names)
    for index, item in enumerate(spec.runtime_patches or ()):
        template = (item.get("trainingRuntimeSpec") or {}).get("template") or {}
        metadata = template.get("metadata") or {}
        yield Patch(
            Origin(PATCH, str(item.get("manager", "")), f"spec.runtimePatches[{index}].trainingRuntimeSpec.template"),
            metadata.get("labels") or {},
            metadata.get("annotations") or {},
            template.get("spec") or {},
        )


def _for_targets(origin: Origin, item: Json, pod_template: Json, job_names: list[str]) -> Patch:
    """A legacy override names its jobs; one the template does not have is no job to touch."""
    targets = {target.get("name") for target in item.get("targetJobs") or ()}
    jobs = [{"name": name, "template": {"spec": {"template": pod_template}}} for name in job_names if name in targets]
    return Patch(origin, {}, {}, {"replicatedJobs": jobs} if jobs else {})


def fit(patch: Json, spec: Json) -> tuple[Json, list[str]]:
    """The part of a patch that has something to lie on, and what was left out, in words.

    A merge would append a job or container that the template does not have, and so make pods without an image.
    """
    jobs = {job.get("name"): job for job in spec.get("replicatedJobs") or ()}
    fitted: list[Json] = []
    left_out: list[str] = []
    for item in patch.get("replicatedJobs") or ():
        job = jobs.get(item.get("name"))
        if job is None:
            left_out.append(
                f"a patch names replicatedJob {item.get('name')!r}, which the runtime's template does not have"
            )
            continue
        fitted.append(_fit_containers(item, job, left_out))
    return {**patch, "replicatedJobs": fitted}, left_out


def _fit_containers(item: Json, job: Json, left_out: list[str]) -> Json:
    pod_template = ((item.get("template") or {}).get("spec") or {}).get("template") or {}
    pod_spec = pod_template.get("spec") or {}
    present = pod_spec_of(job)
    kept: Json = {}
    for field in ("initContainers", "containers"):
        known = {container.get("name") for container in present.get(field) or ()}
        strangers = [c for c in pod_spec.get(field) or () if c.get("name") not in known]
        if strangers:
            kept[field] = [c for c in pod_spec[field] if c.get("name") in known]
            left_out.extend(
                f"a patch names {field} {c.get('name')!r} of {job['name']}, which the runtime's template does not have"
                for c in strangers
            )
    if not kept:
        return item
    pod_template = {**pod_template, "spec": {**pod_spec, **kept}}
    return {**item, "template": {**item["template"], "spec": {**item["template"]["spec"], "template": pod_template}}}


def merge(spec: Json, patch: Json) -> Json:
    """The JobSet spec with a fitted patch laid over it; the order of the jobs stays that of the template."""
    try:
        # Sparse again, since what a patch sets to nothing is not set.
        merged = sparse(strategic_merge(spec, sparse(patch, "trainer.JobSetSpecPatch"), _JOB_SET))
    except StrategicMergeError as error:
        raise TemplateInvalid(str(error)) from None
    order = {job.get("name"): index for index, job in enumerate(spec.get("replicatedJobs") or ())}
    merged["replicatedJobs"] = sorted(merged.get("replicatedJobs") or (), key=lambda job: order[job["name"]])
    return merged


class _Merges:
    """The merge keys of the fields a patch can carry; any other field merges as an object or is replaced."""

    def __init__(self, **fields: MergeField) -> None:
        self.fields = fields

    def merge_field(self, name: str) -> MergeField:
        return self.fields.get(name) or _PLAIN


_NOTHING = _Merges()
_PLAIN = MergeField(_NOTHING)
_BY_NAME = MergeField(_NOTHING, merge=True, merge_key="name")
_METADATA = MergeField(_Merges(finalizers=MergeField(_NOTHING, merge=True)))
_CONTAINERS = MergeField(
    _Merges(env=_BY_NAME, volumeMounts=MergeField(_NOTHING, merge=True, merge_key="mountPath")),
    merge=True,
    merge_key="name",
)
_POD_SPEC = MergeField(
    _Merges(
        volumes=_BY_NAME,
        initContainers=_CONTAINERS,
        containers=_CONTAINERS,
        imagePullSecrets=_BY_NAME,
        schedulingGates=_BY_NAME,
    )
)
_POD_TEMPLATE = MergeField(_Merges(metadata=_METADATA, spec=_POD_SPEC))
_JOB_TEMPLATE = MergeField(_Merges(metadata=_METADATA, spec=MergeField(_Merges(template=_POD_TEMPLATE))))
_JOB_SET = _Merges(replicatedJobs=MergeField(_Merges(template=_JOB_TEMPLATE), merge=True, merge_key="name"))
