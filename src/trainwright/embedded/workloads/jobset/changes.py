"""What JobSet's webhook says about a change of a JobSet, in its words. Pure.

The list of replicated jobs and `managedBy` are immutable. A suspended JobSet, or one that is being suspended, may
change what queues write into pod templates; with the gate ElasticJobSet an indexed Job may be scaled.
"""

from __future__ import annotations

import copy
from typing import Any

from trainwright.embedded.workloads.features import Features
from trainwright.embedded.workloads.objects import find_condition, without_nulls
from trainwright.schema.errors import FieldError, forbidden, invalid
from trainwright.schema.jsonobject import Json

IMMUTABLE = "field is immutable"
_MAPS = ("labels", "annotations", "nodeSelector", "limits", "requests", "matchLabels")


def faults_of_change(old: Json, new: Json, gates: Features) -> list[FieldError]:
    """The faults of an update: both objects whole."""
    before: Json = without_nulls(old.get("spec") or {})
    after: Json = without_nulls(copy.deepcopy(new.get("spec") or {}))
    known = {replicated.get("name"): replicated for replicated in before.get("replicatedJobs") or ()}
    found: list[FieldError] = []
    shown = copy.deepcopy(after.get("replicatedJobs") or [])
    for position, replicated in enumerate(after.get("replicatedJobs") or ()):
        was = known.get(replicated.get("name"))
        if was is None:
            continue
        if gates.elastic_job_set and _job(replicated).get("completionMode") == "Indexed":
            found += _scaling(position, _job(was), _job(replicated), ended=_has_ended(old))
            for compared in (replicated, shown[position]):
                _take(_job(compared), _job(was), "parallelism", "completions")
        if before.get("suspend") or after.get("suspend"):
            for compared in (replicated, shown[position]):
                _mask_template(_job(compared), _job(was))
    if _plain(after.get("replicatedJobs")) != _plain(before.get("replicatedJobs")):
        found.append(invalid("spec.replicatedJobs", shown, IMMUTABLE))
    if after.get("managedBy") != before.get("managedBy"):
        found.append(invalid("spec.managedBy", after.get("managedBy"), IMMUTABLE))
    return found


def _job(replicated: Json) -> Json:
    spec: Json = (replicated.get("template") or {}).get("spec") or {}
    return spec


def _has_ended(job_set: Json) -> bool:
    conditions = (job_set.get("status") or {}).get("conditions") or ()
    ends = (find_condition(conditions, type) for type in ("Completed", "Failed"))
    return any(end is not None and end.get("status") == "True" for end in ends)


def _scaling(position: int, was: Json, job: Json, *, ended: bool) -> list[FieldError]:
    changed = [field for field in ("parallelism", "completions") if was.get(field) != job.get(field)]
    where = f"spec.replicatedJobs[{position}].template.spec"
    if not changed:
        return []
    if ended:
        text = "Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)"
        return [forbidden(where, text)]
    found = []
    for field in changed:
        if job.get(field) is not None and job[field] < 1:
            found.append(invalid(f"{where}.{field}", job[field], f"{field} must be >= 1"))
    parallelism, completions = job.get("parallelism"), job.get("completions")
    if parallelism is not None and completions is not None and parallelism != completions:
        text = "completions must be equal to parallelism for Elastic Indexed Jobs"
        found.append(invalid(f"{where}.completions", completions, text))
    return found


def _mask_template(job: Json, was: Json) -> None:
    """Puts the old value in place of everything that a queue may change while the JobSet is suspended."""
    pod, pod_was = job.setdefault("template", {}), was.get("template") or {}
    metadata = pod.setdefault("metadata", {})
    _take(metadata, pod_was.get("metadata") or {}, "labels", "annotations")
    if not metadata and "metadata" not in pod_was:
        del pod["metadata"]
    spec, spec_was = pod.setdefault("spec", {}), pod_was.get("spec") or {}
    _take(spec, spec_was, "nodeSelector", "tolerations", "schedulingGates")


def _take(into: Json, source: Json, *fields: str) -> None:
    for field in fields:
        if field in source:
            into[field] = copy.deepcopy(source[field])
        else:
            into.pop(field, None)


def _plain(value: Any, name: str = "") -> Any:
    """The value for comparison: empty lists and maps are as good as none."""
    if isinstance(value, dict):
        members = {key: _plain(item, key) for key, item in value.items()}
        return {
            key: item
            for key, item in members.items()
            if not (item in ([], None) or (item == {} and key in (*_MAPS, "metadata")))
        }
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    return value
