"""Which pods a Job that goes on creates or deletes: never both at once. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.embedded.workloads.job import pods
from trainwright.embedded.workloads.job.backoff import Record, finished_at
from trainwright.embedded.workloads.job.facts import Facts
from trainwright.embedded.workloads.job.pods import IndexFailures
from trainwright.embedded.workloads.job.surplus import surplus
from trainwright.embedded.workloads.objects import ApiObject

MAX_PODS_AT_ONCE = 500
"""How many pods one decision creates or deletes at most."""


@dataclass(frozen=True, slots=True)
class PodToCreate:
    """A pod by its name and index. `failures`: how often its index failed before, if the Job counts that."""

    name: str
    index: int | None
    failures: IndexFailures | None = None


@dataclass(slots=True)
class Change:
    """Pods to create, or to delete, or the seconds to wait before any may be created."""

    create: list[PodToCreate] = field(default_factory=list)
    delete: list[ApiObject] = field(default_factory=list)
    after: float | None = None


def change(facts: Facts, record: Record, now: float) -> Change:
    completions = facts.completions if facts.indexed else None
    if facts.suspended:
        return Change(delete=surplus(facts.active, len(facts.active), completions))
    wanted = _wanted(facts)
    too_many = surplus(facts.active, max(0, len(facts.active) - wanted), completions)
    if too_many:
        return Change(delete=too_many[:MAX_PODS_AT_ONCE])
    missing = wanted - len(facts.active) - (len(facts.terminating) if facts.replaces_only_failed else 0)
    if missing <= 0:
        return Change()
    if facts.limit_per_index is None and (left := record.seconds_left(now)) > 0:
        return Change(after=left)
    missing = min(missing, MAX_PODS_AT_ONCE)
    return _creations(facts, _pending_indexes(facts, missing) if facts.indexed else [None] * missing, now)


def _wanted(facts: Facts) -> int:
    if facts.completions is None:
        return len(facts.active) if facts.succeeded else facts.parallelism
    return max(0, min(facts.completions - facts.succeeded, facts.parallelism))


def _pending_indexes(facts: Facts, count: int) -> list[int | None]:
    assert facts.completions is not None
    busy = {pods.index_of(pod) for pod in facts.active} | facts.succeeded_indexes | facts.failed_indexes
    if facts.replaces_only_failed:
        busy |= {pods.index_of(pod) for pod in facts.terminating}
    found: list[int | None] = []
    for index in range(facts.completions):
        if len(found) == count:
            break
        if index not in busy:
            found.append(index)
    return found


def _creations(facts: Facts, indexes: list[int | None], now: float) -> Change:
    made = Change()
    taken = {pod.name for pod in facts.pods}
    for index in indexes:
        failures = None
        if facts.limit_per_index is not None:
            replaced = facts.awaiting_replacement.get(-1 if index is None else index)
            left = _seconds_left(replaced, now)
            if left > 0:
                made.after = min(left, made.after or left)
                continue
            failures = _failures(facts, replaced)
        name = pods.pod_name(facts.job, index, taken)
        taken.add(name)
        made.create.append(PodToCreate(name, index, failures))
    return made


def _seconds_left(replaced: ApiObject | None, now: float) -> float:
    if replaced is None:
        return 0.0
    return Record(sum(pods.failures_before(replaced)) + 1, finished_at(replaced)).seconds_left(now)


def _failures(facts: Facts, replaced: ApiObject | None) -> IndexFailures:
    if replaced is None:
        return IndexFailures()
    before = pods.failures_before(replaced)
    if facts.counts(replaced):
        return before._replace(counted=before.counted + 1)
    return before._replace(ignored=before.ignored + 1)
