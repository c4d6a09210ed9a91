"""Rules for changes of a job's status.

The controller that runs a job (kube-controller-manager, or the one named in managedBy) writes the status. A finished
job stays finished, counters grow, times are set once. Most rules apply only if the fields they are about change
(ratcheting), so that a job that already breaks one can still be updated.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.embedded.apiserver.builtin.jobrules import indexes_of
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json

AT_LEAST_ZERO = "must be greater than or equal to 0"
COUNTERS = ("active", "succeeded", "failed", "ready", "terminating")


def holds(status: Json, kind: str) -> bool:
    """Whether the condition of this type is true."""
    return _is(status, kind, "True")


def _is(status: Json, kind: str, value: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == value for c in status.get("conditions") or ())


def finished(status: Json) -> bool:
    return holds(status, "Complete") or holds(status, "Failed")


def status_changes(job: Json, old_job: Json) -> list[FieldError]:
    spec, status, old = job["spec"], job.get("status") or {}, old_job.get("status") or {}
    found = [
        field.invalid(f"status.{name}", status[name], AT_LEAST_ZERO) for name in COUNTERS if (status.get(name) or 0) < 0
    ]
    found += _uncounted(status)
    found += [field.invalid("status.conditions", field.OMITTED, text) for text in _conditions(status, old)]
    found += _times(spec, status, old)
    found += _counts(spec, status, old)
    found += _indexes(spec, status, old)
    return found


def _uncounted(status: Json) -> Iterator[FieldError]:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate((status.get("uncountedTerminatedPods") or {}).get(name) or ()):
            at = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield field.invalid(at, uid, "must not be empty")
            elif uid in seen:
                yield field.duplicate(at, uid)
            seen.add(uid)


def _conditions(status: Json, old: Json) -> Iterator[str]:
    names = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    complete, failed, failing, succeeding = (holds(status, name) for name in names)
    changed = {name: holds(status, name) != holds(old, name) for name in names}
    if complete and failed and (changed["Complete"] or changed["Failed"]):
        yield "cannot set Complete=True and Failed=true conditions"
    if complete and failing and (changed["Complete"] or changed["FailureTarget"]):
        yield "cannot set Complete=True and FailureTarget=true conditions"
    if failed and not failing and (changed["Failed"] or _changed(status, old, "failedIndexes")):
        yield "cannot set Failed=True condition without the FailureTarget=true condition"
    if complete and not succeeding and (changed["Complete"] or changed["SuccessCriteriaMet"]):
        yield "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
    if succeeding and failed:
        yield "cannot set SuccessCriteriaMet=True and Failed=true conditions"
    if succeeding and failing:
        yield "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
    for name in ("Failed", "Complete", "FailureTarget"):
        if holds(old, name) and not holds(status, name):
            yield f"cannot disable the terminal {name}=True condition"
    if holds(old, "SuccessCriteriaMet") and not succeeding:
        yield "cannot disable the SuccessCriteriaMet=True condition"
    if holds(old, "Complete") and not holds(old, "SuccessCriteriaMet") and succeeding:
        yield "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"


def _changed(status: Json, old: Json, name: str) -> bool:
    return bool(status.get(name) != old.get(name))


def _times(spec: Json, status: Json, old: Json) -> Iterator[FieldError]:
    complete, start, end = holds(status, "Complete"), status.get("startTime"), status.get("completionTime")
    started, ended = _changed(status, old, "startTime"), _changed(status, old, "completionTime")
    if ended or complete != holds(old, "Complete"):
        if end is not None and not complete:
            text = "cannot set completionTime when there is no Complete=True condition"
            yield field.invalid("status.completionTime", end, text)
        if end is None and complete:
            yield field.required("status.completionTime", "completionTime is required for Complete jobs")
    if (started or ended) and start is not None and end is not None and end < start:
        yield field.invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if ended and end is not None and old.get("completionTime") is not None:
        yield field.invalid("status.completionTime", end, "field is immutable")
    nothing_to_do = spec.get("suspend") is True and spec.get("completions") == 0
    if finished(status) and start is None and (started or not finished(old)) and not nothing_to_do:
        yield field.required("status.startTime", "startTime is required for finished job")
    resuming = holds(old, "Suspended") and _is(status, "Suspended", "False")
    if started and old.get("startTime") is not None and not resuming and not spec.get("suspend"):
        yield field.invalid("status.startTime", start, "field is immutable for unsuspended job once set")


def _counts(spec: Json, status: Json, old: Json) -> Iterator[FieldError]:
    active = status.get("active") or 0
    ends = finished(status) and not finished(old)
    if finished(status):
        for name in ("active", "terminating"):
            if (status.get(name) or 0) > 0 and (ends or _changed(status, old, name)):
                yield field.invalid(f"status.{name}", status[name], f"{name}>0 is invalid for finished job")
        pods = status.get("uncountedTerminatedPods") or {}
        if (pods.get("succeeded") or pods.get("failed")) and (ends or _changed(status, old, "uncountedTerminatedPods")):
            shown = f'{{"Succeeded":{json_text(pods.get("succeeded"))},"Failed":{json_text(pods.get("failed"))}}}'
            text = f"{shown}: must be empty for finished job"
            yield field.invalid("status.uncountedTerminatedPods", field.OMITTED, text)
    ready = status.get("ready")
    if ready is not None and ready > active and (_changed(status, old, "ready") or _changed(status, old, "active")):
        yield field.invalid("status.ready", ready, "cannot set more ready pods than active")
    # An elastic indexed job (completions equal parallelism) may shrink, and its successes with it.
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if elastic else ("failed", "succeeded"):
        if (status.get(name) or 0) < (old.get(name) or 0):
            yield field.invalid(f"status.{name}", status.get(name) or 0, f"cannot decrease the {name} counter")


def _indexes(spec: Json, status: Json, old: Json) -> Iterator[FieldError]:
    done, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    completions, limit = spec.get("completions"), spec.get("backoffLimitPerIndex")
    done_changed = done != (old.get("completedIndexes") or "")
    failed_changed = _changed(status, old, "failedIndexes")
    if done_changed and completions is not None:
        _, fault = indexes_of(done, completions)
        if fault:
            yield field.invalid("status.completedIndexes", done, f"error parsing completedIndexes: {fault}")
    if failed_changed and failed is not None and completions is not None and limit is not None:
        _, fault = indexes_of(failed, completions)
        if fault:
            yield field.invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {fault}")
    if done_changed and done and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield field.invalid("status.completedIndexes", done, text)
    if failed_changed and failed is not None and limit is None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield field.invalid("status.failedIndexes", failed, text)
    if (done_changed or failed_changed) and completions is not None and failed is not None:
        both = _overlap(done, failed, completions)
        if both is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {both}"
            yield field.invalid("status.failedIndexes", failed, text)


def _overlap(done: str, failed: str, completions: int) -> int | None:
    ours, _ = indexes_of(done, completions)
    theirs, _ = indexes_of(failed, completions)
    starts = [max(a, c) for a, b in ours for c, d in theirs if max(a, c) <= min(b, d)]
    return min(starts, default=None)
