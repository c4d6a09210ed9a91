"""What a TrainJob becomes, with the origin of every field; its YAML; and how it differs from the one before it.

The objects are built here by the pure core, from the TrainJob and the runtime that the viewer may read, as the operator
builds them and as `trainwright explain` shows them.
"""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import trainjob_from
from trainwright.client.client import Client
from trainwright.client.errors import ApiError
from trainwright.dashboard.history import plain_yaml
from trainwright.pipeline import MaskedKeys, Observed, PipelineError, TemplateInvalid, build
from trainwright.pipeline.explanation import Field, describe, explained, nowhere, trace_defaults
from trainwright.pipeline.plan import MASK
from trainwright.pipeline.provenance import Trace
from trainwright.plugins.registry import Registry
from trainwright.schema.jsonobject import Json


async def of_job(client: Client, namespace: str, name: str) -> Json:
    job = await client.get(TRAIN_JOBS, name, namespace)
    job = {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, **job}
    answer: Json = {"yaml": plain_yaml(job), "objects": [], "problem": ""}
    ref = (job.get("spec") or {}).get("runtimeRef") or {}
    resource = TRAINING_RUNTIMES if ref.get("kind") == TRAINING_RUNTIMES.kind else CLUSTER_TRAINING_RUNTIMES
    home = namespace if resource.namespaced else None
    try:
        runtime = await client.get(resource, str(ref.get("name") or ""), home)
    except ApiError as error:
        answer["problem"] = f"its runtime cannot be read: {error}"
        return answer
    try:
        answer["objects"] = rendered(job, {"kind": resource.kind, "apiVersion": resource.api_version, **runtime})
    except PipelineError as error:
        answer["problem"] = str(error)
    return answer


def rendered(job: Json, runtime: Json) -> list[Json]:
    """The objects of a TrainJob, each field with its origin. Pure; raises `PipelineError`."""
    try:
        typed, typed_runtime = trainjob_from(_submitted(job)), runtime_from(runtime)
    except msgspec.ValidationError as error:  # of a server whose schema is another one
        raise TemplateInvalid(f"the TrainJob or its runtime is not what the API allows: {error}") from error
    trace = Trace()
    trace_defaults(trace, runtime, runtime)
    framework = Registry().load().framework
    plan = build(typed, typed_runtime, Observed(ca_certificate=MASK), framework, MaskedKeys(), trace)
    return [
        {
            "title": item.title,
            "fields": [_field(field) for field in item.fields],
            "removed": [_field(field) for field in item.removed],
        }
        for item in explained(plan, trace, nowhere, typed.metadata.name)
    ]


def _submitted(job: Json) -> Json:
    """Without what the cluster has made of it: as it was submitted."""
    return {key: value for key, value in job.items() if key != "status"}


def _field(field: Field) -> Json:
    return {
        "path": field.path,
        "value": _shown(field.value),
        "layer": field.origin.layer,
        "origin": describe(field.origin),
        "lost": [{"value": _shown(value), "origin": describe(origin)} for value, origin in field.lost],
    }


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


async def difference_on_cluster(client: Client, job: Json) -> Json:
    """How a TrainJob differs from the newest older one of its namespace that has the same runtime."""
    metadata = job["metadata"]
    ref = (job.get("spec") or {}).get("runtimeRef")
    listed = (await client.list(TRAIN_JOBS, metadata["namespace"])).items or []
    created = str(metadata.get("creationTimestamp") or "")
    older = [
        item
        for item in listed
        if item["metadata"]["uid"] != metadata["uid"]
        and (item.get("spec") or {}).get("runtimeRef") == ref
        and str(item["metadata"].get("creationTimestamp") or "") < created
    ]
    if not older:
        return {"previous": "", "lines": []}
    last = max(older, key=lambda item: str(item["metadata"].get("creationTimestamp") or ""))
    old, new = (plain_yaml({"spec": item.get("spec") or {}}) for item in (last, job))
    names = (last["metadata"]["name"], metadata["name"])
    return {
        "previous": names[0],
        "lines": list(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")),
    }
