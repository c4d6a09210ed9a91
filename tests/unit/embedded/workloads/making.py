"""Jobs, JobSets, pods and nodes as the workload controllers see them, for their tests."""

from __future__ import annotations

import itertools
from typing import Any

from trainwright.api.metadata import ObjectMeta, OwnerReference
from trainwright.api.times import rfc3339
from trainwright.api.wellknown import COMPLETION_INDEX
from trainwright.embedded.workloads.job.accounting import FINALIZER
from trainwright.embedded.workloads.jobset import children
from trainwright.embedded.workloads.jobset.defaults import defaulted
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

NOW = 1_700_000_000.0
_numbers = itertools.count()

TEMPLATE: Json = {"spec": {"containers": [{"name": "node", "command": ["train"]}], "restartPolicy": "Never"}}


def job(status: Json | None = None, **spec: Any) -> ApiObject:
    metadata = ObjectMeta(name="j", namespace="ns", uid="job-uid", resource_version="1")
    return ApiObject(metadata, {"template": TEMPLATE, **spec}, status or {})


def pod(
    index: int | None = None,
    phase: str = "Running",
    *,
    ready: bool = False,
    deleting: bool = False,
    exit_code: int | None = None,
    at: float = NOW - 1000,
    restarts: int = 0,
    name: str | None = None,
    tracked: bool = True,
) -> ApiObject:
    """A pod of a Job. `tracked`: with the Job controller's finalizer, as all are until they have been counted."""
    number = next(_numbers)
    marks = {} if index is None else {COMPLETION_INDEX: str(index)}
    metadata = ObjectMeta(
        name=name or f"p{number}",
        namespace="ns",
        uid=f"uid-{number}",
        labels=marks,
        annotations=marks,
        finalizers=[FINALIZER] if tracked else None,
        deletion_timestamp=rfc3339(at) if deleting else None,
    )
    state: Json = {"running": {}}
    if phase in ("Succeeded", "Failed"):
        code = exit_code if exit_code is not None else int(phase == "Failed")
        state = {"terminated": {"exitCode": code, "finishedAt": rfc3339(at)}}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(at)}] if ready else []
    containers = [{"name": "node", "state": state, "restartCount": restarts}]
    return ApiObject(metadata, {}, {"phase": phase, "conditions": conditions, "containerStatuses": containers})


def replicated(name: str = "node", replicas: int = 1, **more: Any) -> Json:
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": TEMPLATE}}, **more}


def job_set(*replicated_jobs: Json, status: Json | None = None, **spec: Any) -> ApiObject:
    metadata = ObjectMeta(name="js", namespace="ns", uid="js-uid", resource_version="1")
    return ApiObject(metadata, {"replicatedJobs": list(replicated_jobs) or [replicated()], **spec}, status or {})


def child(
    of: ApiObject,
    name: str = "node",
    index: int = 0,
    *,
    attempt: int = 0,
    at: float = NOW - 10,
    deleting: bool = False,
    **status: Any,
) -> ApiObject:
    """A Job of the JobSet, as its own decision would have made it, with a status."""
    spec = defaulted(of.spec)
    replicated_job = next(r for r in spec["replicatedJobs"] if r["name"] == name)
    made = children.job(of, spec, replicated_job, index)
    labels = {**made["metadata"]["labels"], children.RESTART_ATTEMPT: str(attempt)}
    owner = OwnerReference(
        api_version="jobset.x-k8s.io/v1alpha2", kind="JobSet", name="js", uid="js-uid", controller=True
    )
    metadata = ObjectMeta(
        name=made["metadata"]["name"],
        namespace="ns",
        uid=f"uid-{made['metadata']['name']}-{attempt}",
        resource_version="1",
        labels=labels,
        owner_references=[owner],
        deletion_timestamp=rfc3339(at) if deleting else None,
    )
    return ApiObject(metadata, made["spec"], status)


def ended(type: str, reason: str = "BackoffLimitExceeded", message: str = "m", at: float = NOW - 10) -> Json:
    """The status of a Job that is Complete or Failed."""
    condition = {
        "type": type,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(at),
    }
    return {"conditions": [condition]}


def conditions(status: Json) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", ())}
