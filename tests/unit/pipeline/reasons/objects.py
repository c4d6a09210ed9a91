"""Objects for tests of reasons, as an API server sends them."""

from __future__ import annotations

from typing import Any

from trainwright.api.wellknown import COMPLETION_INDEX, REPLICATED_JOB
from trainwright.schema.jsonobject import Json

NOW = 1_800_000_000.0


def train_job(*, failed: Json | None = None, message: str = "", **spec: Any) -> Json:
    status: Json = {"state": "Failed" if failed else "Pending"}
    if failed is not None:
        status["conditions"] = [{"type": "Failed", "status": "True", **failed}]
    if message:
        status["message"] = message
    return {"metadata": {"name": "job", "namespace": "ns", "labels": {}}, "spec": spec, "status": status}


FAILED_JOB = train_job(failed={"reason": "FailedJobs", "message": "jobset failed due to one or more job failures"})


def pod(index: int = 0, *, job: str = "node", processes: int = 1, spec: Json | None = None, **status: Any) -> Json:
    labels = {REPLICATED_JOB: job, COMPLETION_INDEX: str(index)}
    command = ["torchrun", f"--nproc-per-node={processes}", "train.py"]
    return {
        "metadata": {"name": f"job-{job}-0-{index}", "labels": labels},
        "spec": {"containers": [{"name": "node", "command": command}], **(spec or {})},
        "status": {"phase": "Pending", **status},
    }


def ended(
    index: int = 0,
    lines: str = "",
    *,
    code: int = 1,
    at: str = "2026-01-01T00:00:05Z",
    processes: int = 1,
    reason: str = "Error",
    **more: Any,
) -> Json:
    """A pod whose container ended with an error after it had written these lines."""
    terminated = {"exitCode": code, "reason": reason, "finishedAt": at, "message": lines, **more}
    statuses = [{"name": "node", "state": {"terminated": terminated}}]
    return pod(index, processes=processes, phase="Failed", containerStatuses=statuses)


def waiting(reason: str, message: str = "", **container: Any) -> Json:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod(phase="Pending", containerStatuses=[{"name": "node", "state": state, **container}], spec=ON_A_NODE)


ON_A_NODE: Json = {"nodeName": "worker-1", "containers": [{"name": "node", "image": "registry/train:1"}]}


def unschedulable(message: str, *, spec: Json | None = None, reason: str = "Unschedulable") -> Json:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod(conditions=[condition], spec=spec)


def event(kind: str, name: str, reason: str, message: str) -> Json:
    return {"type": "Warning", "reason": reason, "message": message, "involvedObject": {"kind": kind, "name": name}}
