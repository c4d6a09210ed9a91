"""The chain from the TrainJob to the object in which its reason was found, each with what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trainwright.pipeline.reasons.cause import Finding
from trainwright.pipeline.reasons.evidence import (
    Evidence,
    condition_of,
    conditions_of,
    container_statuses,
    labels_of,
    name_of,
    phase_name,
    status_of,
)
from trainwright.schema.jsonobject import Json

JOB_NAME = "batch.kubernetes.io/job-name"


class Link(msgspec.Struct, frozen=True):
    kind: str
    name: str
    says: str


def chain_of(evidence: Evidence, found: Finding) -> tuple[Link, ...]:
    """TrainJob → JobSet → Job → Pod → node, claim, queue: as far as they are known and lead to the finding."""
    return tuple(_links(evidence, found))


def _links(evidence: Evidence, found: Finding) -> Iterator[Link]:
    yield Link("TrainJob", name_of(evidence.job), _state_of_job(evidence.job))
    if evidence.workload is not None:
        kind = str(evidence.workload.get("kind") or "JobSet")
        yield Link(kind, name_of(evidence.workload), _state(evidence.workload))
    pod = next((pod for pod in evidence.pods if name_of(pod) == found.name), None)
    if pod is None and found.kind == "PersistentVolumeClaim":
        pod = next((pod for pod in evidence.pods if phase_name(pod) == "Pending"), None)
    owner = labels_of(pod).get(JOB_NAME) if pod is not None else found.name if found.kind == "Job" else None
    for job in evidence.jobs:
        if name_of(job) == owner:
            yield Link("Job", name_of(job), _state(job))
    if pod is not None:
        yield Link("Pod", name_of(pod), _state_of_pod(pod))
        node = (pod.get("spec") or {}).get("nodeName")
        if node:
            known = next((one for one in evidence.nodes if name_of(one) == node), None)
            yield Link("Node", str(node), _state_of_node(known) if known else "")
    if found.kind not in ("TrainJob", "JobSet", "Job", "Pod"):
        yield Link(found.kind, found.name, found.what)


def _state_of_job(job: Json) -> str:
    status = status_of(job)
    for kind in ("Complete", "Failed"):
        if end := condition_of(job, kind):
            return f"{kind} ({end.get('reason')}): {end.get('message')}"
    if (job.get("spec") or {}).get("suspend"):
        return "Suspended"
    return str(status.get("state") or "has no status yet")


def _state(obj: Json) -> str:
    """The last condition that is true, in its own words; else how many pods it counts."""
    true = [item for item in conditions_of(obj) if item.get("status") == "True"]
    if true:
        last = true[-1]
        detail = last.get("message") or last.get("reason") or ""
        return f"{last.get('type')}{f': {detail}' if detail else ''}"
    status = status_of(obj)
    counts = [f"{status[field]} {field}" for field in ("active", "ready", "failed", "succeeded") if status.get(field)]
    for item in status.get("replicatedJobsStatus") or ():
        parts = [f"{item[field]} {field}" for field in ("active", "ready", "failed", "succeeded") if item.get(field)]
        counts.append(f"{item.get('name')}: {', '.join(parts) or 'nothing yet'}")
    return "; ".join(counts) or "has no status yet"


def _state_of_pod(pod: Json) -> str:
    says = phase_name(pod)
    if reason := status_of(pod).get("reason"):
        says += f" ({reason})"
    for container in container_statuses(pod):
        for name, state in (container.get("state") or {}).items():
            detail = state.get("reason") or ""
            if name == "terminated":
                detail = f"exit code {state.get('exitCode')}{f', {detail}' if detail not in ('', 'Error') else ''}"
            says += f"; container {container.get('name')} {name}{f' ({detail})' if detail else ''}"
    return says


def _state_of_node(node: Json) -> str:
    ready = condition_of(node, "Ready") is not None
    room = status_of(node).get("allocatable") or {}
    shown = [f"{room[name]} {name}" for name in room if name in ("cpu", "memory") or "gpu" in name]
    return f"{'Ready' if ready else 'not ready'}; allocatable: {', '.join(shown) or 'unknown'}"
