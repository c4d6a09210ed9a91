"""Restarts of single Jobs (gate RestartJob): how often each Job of a replicated job was created again.

The counts are lists in the JobSet's `replicatedJobsStatus`, by the Job's index, and absent while all are zero.
"""

from __future__ import annotations

from trainwright.api.wellknown import REPLICATED_JOB
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

JOB_RESTART_ATTEMPT = "jobset.sigs.k8s.io/job-restart-attempt"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
ALL, COUNTED = "jobRestarts", "jobRestartsCountTowardsMax"


class BadLabel(Exception):
    """A Job's label does not say which attempt it belongs to; the JobSet waits until somebody mends it."""


def of(spec: Json, status: Json, name: str, field: str = ALL) -> list[int]:
    """The counts of a replicated job, one for each replica."""
    for entry in status.get("replicatedJobsStatus") or ():
        if entry.get("name") == name and entry.get(field):
            return list(entry[field])
    return [0] * next((r["replicas"] for r in spec["replicatedJobs"] if r["name"] == name), 0)


def is_outdated(spec: Json, status: Json, job: ApiObject) -> bool:
    """Whether the Job was replaced by a restart of itself alone."""
    text = job.metadata.label(JOB_RESTART_ATTEMPT)
    if text is None:
        return False
    name, index = place(job)
    counts = of(spec, status, name)
    if index >= len(counts):
        raise BadLabel(f"job index {index} is out of bounds for replicated job {name}")
    return number(job, JOB_RESTART_ATTEMPT) < counts[index]


def restart(spec: Json, statuses: dict[str, Json], job: ApiObject, *, counts: bool) -> None:
    """Counts one more restart of the Job in the statuses to be stored."""
    name, index = place(job)
    entry = statuses[name]
    for field in (ALL, COUNTED) if counts else (ALL,):
        restarts = of(spec, {"replicatedJobsStatus": [entry]}, name, field)
        if index >= len(restarts):
            raise BadLabel(
                f"failed job {job.name} has index {index} out of bounds for replicated job {name}"
                f" (replicas: {len(restarts)})"
            )
        restarts[index] += 1
        entry[field] = restarts


def total_towards_max(status: Json) -> int:
    """How many restarts count towards maxRestarts: of the whole JobSet and of single Jobs."""
    entries = status.get("replicatedJobsStatus") or ()
    of_jobs = sum(sum(entry.get(COUNTED) or ()) for entry in entries)
    return int(status.get("restartsCountTowardsMax", 0)) + of_jobs


def place(job: ApiObject) -> tuple[str, int]:
    """The replicated job that a Job belongs to, and its index in it."""
    name = job.metadata.label(REPLICATED_JOB)
    if name is None:
        raise BadLabel(f"missing label {REPLICATED_JOB}")
    return name, number(job, JOB_INDEX)


def number(job: ApiObject, label: str) -> int:
    text = job.metadata.label(label)
    if text is None or not text.lstrip("+-").isdecimal():
        raise BadLabel(f"job {job.name}: invalid value {text!r} for label {label}, must be integer")
    return int(text)
