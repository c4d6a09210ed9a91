"""Runtimes and plugins: what is there, who uses it, and what it becomes."""

from __future__ import annotations

from typing import Any

import msgspec

from trainwright.api.phases import name_of
from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from trainwright.client.client import Client
from trainwright.client.errors import ApiError
from trainwright.dashboard.history import plain_yaml
from trainwright.dashboard.objects import rendered
from trainwright.pipeline import PipelineError
from trainwright.plugins.listing import rows_of
from trainwright.plugins.registry import Registry
from trainwright.schema.jsonobject import Json

FRAMEWORK = "trainer.kubeflow.org/framework"
EXAMPLE = "example"


async def listed(client: Client, namespace: str) -> Json:
    jobs = await _list(client, TRAIN_JOBS, namespace or None)
    found = []
    for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES):
        for runtime in await _list(client, resource, (namespace or None) if resource.namespaced else None):
            runtime = {"apiVersion": resource.api_version, "kind": resource.kind, **runtime}
            found.append(_row(runtime, [job for job in jobs if _uses(job, runtime)]))
    return {
        "runtimes": sorted(found, key=lambda row: (row["kind"], row["name"])),
        "plugins": [msgspec.to_builtins(row) for row in rows_of(Registry().load())],
    }


async def _list(client: Client, resource: Resource, namespace: str | None) -> list[Json]:
    try:
        return (await client.list(resource, namespace)).items or []
    except ApiError:
        return []  # not there, or not to be read


def _row(runtime: Json, users: list[Json]) -> Json:
    metadata, spec = runtime["metadata"], runtime.get("spec") or {}
    policy = spec.get("mlPolicy") or {}
    answer: Json = {
        "name": name_of(runtime),
        "namespace": str(metadata.get("namespace") or ""),
        "kind": runtime["kind"],
        "framework": str((metadata.get("labels") or {}).get(FRAMEWORK) or _framework(policy)),
        "nodes": policy.get("numNodes") or 1,
        "gang": ", ".join(spec.get("podGroupPolicy") or ()),
        "images": _images(spec),
        "users": [{"namespace": job["metadata"]["namespace"], "name": name_of(job)} for job in users],
        "yaml": plain_yaml(runtime),
        "becomes": [],
        "problem": "",
    }
    try:
        answer["becomes"] = rendered(_example(runtime), runtime)
    except PipelineError as error:
        answer["problem"] = str(error)
    return answer


def _example(runtime: Json) -> Json:
    """The least TrainJob that names the runtime."""
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": EXAMPLE, "namespace": runtime["metadata"].get("namespace") or "default", "uid": "example"},
        "spec": {
            "runtimeRef": {"name": name_of(runtime), "kind": runtime["kind"], "apiGroup": TRAIN_JOBS.group},
            "suspend": False,
            "managedBy": "trainer.kubeflow.org/trainjob-controller",
        },
    }


def _framework(policy: Json) -> str:
    return next((key for key in policy if key != "numNodes"), "plain")


def _images(spec: Json) -> list[str]:
    jobs: Any = ((spec.get("template") or {}).get("spec") or {}).get("replicatedJobs") or ()
    images: list[str] = []
    for job in jobs:
        pod = (((job.get("template") or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
        for container in [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]:
            images.append(str(container.get("image") or ""))
    return list(dict.fromkeys(filter(None, images)))


def _uses(job: Json, runtime: Json) -> bool:
    ref = (job.get("spec") or {}).get("runtimeRef") or {}
    kind = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    home = runtime["metadata"].get("namespace")
    same = home is None or home == job["metadata"].get("namespace")
    return bool(ref.get("name") == name_of(runtime) and kind == runtime["kind"] and same)
