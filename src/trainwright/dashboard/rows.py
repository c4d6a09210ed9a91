"""A TrainJob as one line of the jobs view. Pure; the sentence is the one of `get` and `why`."""

from __future__ import annotations

from trainwright.api.phases import condition, name_of
from trainwright.api.reports import report_of
from trainwright.api.wellknown import REPLICATED_JOB, RUN
from trainwright.pipeline.reasons.evidence import condition_of, phase_name
from trainwright.pipeline.reasons.sentences import Phase, expected_pods, phase_of
from trainwright.schema.jsonobject import Json

FINAL = ("Complete", "Failed")


def row_of(job: Json, jobset: Json | None, pods: list[Json], now: float, *, sees_workloads: bool) -> Json:
    metadata, spec = job.get("metadata") or {}, job.get("spec") or {}
    phase = phase_of(job, jobset, pods, now) if sees_workloads else phase_by_status(job)
    report = report_of(job)
    nodes = [pod for pod in pods if _is_node(pod)] or pods
    ready = sum(condition_of(pod, "Ready") is not None or phase_name(pod) == "Succeeded" for pod in nodes)
    return {
        "uid": str(metadata.get("uid") or ""),
        "namespace": str(metadata.get("namespace") or ""),
        "name": name_of(job),
        "state": phase.name,
        "sentence": phase.sentence,
        "ready": ready if sees_workloads else None,
        "nodes": nodes_of(job, jobset),
        "percent": percent_of(report.percent, report.step, report.total),
        "step": report.step,
        "total": report.total,
        "remaining": report.remaining,
        "metrics": [list(metric) for metric in report.metrics],
        "runtime": str((spec.get("runtimeRef") or {}).get("name") or ""),
        "created": metadata.get("creationTimestamp"),
        "ended": ended_at(job),
        "deleting": bool(metadata.get("deletionTimestamp")),
        "elastic": elastic_of(job),
        "run": (metadata.get("annotations") or {}).get(RUN) or "",
        "restarts": int(((jobset or {}).get("status") or {}).get("restarts") or 0),
    }


def is_settled(row: Json) -> bool:
    """Whether the row stays the same as long as the objects do."""
    return row["state"] in (*FINAL, "Suspended")


def phase_by_status(job: Json) -> Phase:
    """What the TrainJob's own status says, for a viewer who may not read its JobSet and pods."""
    status = job.get("status") or {}
    said = str(status.get("message") or "")
    for kind in FINAL:
        if end := condition(job, kind):
            return Phase(kind, said or str(end.get("message") or ""))
    if (job.get("spec") or {}).get("suspend"):
        return Phase("Suspended", said or "suspended by spec.suspend")
    ready = sum(int(item.get("ready") or 0) for item in status.get("jobsStatus") or ())
    return Phase("Running" if ready else "Pending", said or ("running" if ready else "waiting for its pods"))


def nodes_of(job: Json, jobset: Json | None) -> int | None:
    """How many nodes it asks for; those of its JobSet where the TrainJob leaves it to the runtime."""
    elastic = (job.get("status") or {}).get("elastic") or {}
    asked = elastic.get("wantedNodes") or ((job.get("spec") or {}).get("trainer") or {}).get("numNodes")
    if asked is not None:
        return int(asked)
    if jobset is None:
        return None
    for replicated in (jobset.get("spec") or {}).get("replicatedJobs") or ():
        if replicated.get("name") == "node":
            inner = (replicated.get("template") or {}).get("spec") or {}
            return int(replicated.get("replicas") or 1) * int(inner.get("parallelism") or 1)
    return expected_pods(job, jobset)


def elastic_of(job: Json) -> Json | None:
    """How many nodes an elastic TrainJob may have, None for any other."""
    elastic = (job.get("status") or {}).get("elastic")
    if not elastic:
        return None
    return {"least": elastic.get("minNodes"), "most": elastic.get("maxNodes"), "wanted": elastic.get("wantedNodes")}


def percent_of(percent: int | None, step: str | None, total: str | None) -> float | None:
    if percent is not None:
        return float(percent)
    try:
        whole = float(total or "")
        return min(100.0, max(0.0, 100 * float(step or "") / whole)) if whole > 0 else None
    except ValueError:
        return None


def ended_at(job: Json) -> str | None:
    for kind in FINAL:
        if end := condition(job, kind):
            return end.get("lastTransitionTime")
    return None


def _is_node(pod: Json) -> bool:
    return ((pod.get("metadata") or {}).get("labels") or {}).get(REPLICATED_JOB) == "node"
