"""Decides what the Job controller does next: a pure function of the Job, its pods and the time.

In: the Job, every pod it controls, seconds since the epoch and the back-off so far. Out: a `Decision`. It does not
depend on having seen an event, and carrying it out twice is harmless: pods to create have fixed names, pods to delete
are identified by uid, and a finished pod is counted when its finalizer goes (`accounting`). Pods that this controller
deletes because there are too many, or because the Job is suspended, do not count as failures; all others do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trainwright.api.events import EventType
from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.job import ending, indexes, population
from trainwright.embedded.workloads.job.accounting import MOST_AT_ONCE, Uncounted, is_tracked
from trainwright.embedded.workloads.job.backoff import Record
from trainwright.embedded.workloads.job.ending import COMPLETED, FINAL, SUCCESS, End
from trainwright.embedded.workloads.job.facts import Facts
from trainwright.embedded.workloads.job.pods import index_of
from trainwright.embedded.workloads.job.population import PodToCreate
from trainwright.embedded.workloads.objects import ApiObject, find_condition
from trainwright.schema.jsonobject import Json

Event = tuple[EventType, str, str]
TOO_MANY = "Too many succeeded pods running after completion count reached"


@dataclass(slots=True)
class Decision:
    """What to do, in this order: create, delete, store the status, take finalizers off, store the status once more."""

    create: list[PodToCreate] = field(default_factory=list)
    delete: list[ApiObject] = field(default_factory=list)
    uncounted: bool = False
    """Whether pods to delete lose their finalizers first, so that they do not count as failed."""
    status: Json = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    """Events for the first status."""
    release: list[ApiObject] = field(default_factory=list)
    """Pods whose finalizers go when the status, which names them, is stored."""
    tracked: frozenset[str] = frozenset()
    """The uids of all pods with a finalizer."""
    end: End | None = None
    """How the Job ends once every pod is counted and none is left."""
    completions: int | None = None
    leaves_some: bool = False
    """Whether there are more pods to count than one step may."""
    after: float | None = None
    record: Record = field(default_factory=Record)

    def counted(self, released: Iterable[str], now: float) -> tuple[Json, list[Event]]:
        """The status, and its events, after these pods have lost their finalizers."""
        uncounted = Uncounted(self.status)
        uncounted.count(self.tracked - set(released))
        status = {**self.status, "uncountedTerminatedPods": uncounted.json()}
        status |= {"succeeded": uncounted.succeeded_count, "failed": uncounted.failed_count}
        if self.end is None or uncounted or status["terminating"] or self.leaves_some:
            return stored(status), []
        type = FINAL[self.end.type]
        conditions = [c for c in status.get("conditions") or () if c.get("type") != type]
        status["conditions"] = [*conditions, condition(type, "True", self.end.reason, self.end.message, now)]
        if self.end.type != SUCCESS:
            return stored(status), [("Warning", self.end.reason, self.end.message)]
        events: list[Event] = [("Normal", "Completed", "Job completed")]
        if self.completions is not None and uncounted.succeeded_count > self.completions:
            events.insert(0, ("Warning", "TooManySucceededPods", TOO_MANY))
        return stored({**status, "completionTime": rfc3339(now)}), events


def is_finished(job: ApiObject) -> bool:
    return job.is_true("Complete") or job.is_true("Failed")


def decide(job: ApiObject, owned: Iterable[ApiObject], now: float, record: Record | None = None) -> Decision:
    """The next step of a Job that is not finished. Without a record of earlier failures the pods that are there are
    the record.
    """
    facts = Facts(job, owned)
    if record is None:
        counted = [pod for pod in facts.pods if not is_tracked(pod)]
        succeeded = [pod for pod in counted if pod.phase == "Succeeded"]
        record = Record().after(succeeded, [pod for pod in counted if pod.phase == "Failed"])
    return _Step(facts, record.after(facts.new_succeeded, facts.new_failed), now).decide()


def condition(type: str, status: str, reason: str, message: str, now: float) -> Json:
    times = {"lastProbeTime": rfc3339(now), "lastTransitionTime": rfc3339(now)}
    return {"type": type, "status": status, **times, "reason": reason, "message": message}


def stored(status: Json) -> Json:
    """As the API server stores it: empty fields are absent, except for those that are always written."""
    always = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
    return {key: value for key, value in status.items() if key in always or value not in (None, 0, "", [])}


class _Step:
    """One evaluation: the end, or pods to create and delete; then who is counted; then the status."""

    def __init__(self, facts: Facts, record: Record, now: float) -> None:
        self.facts = facts
        self.now = now
        self.decision = Decision(record=record, completions=facts.completions)
        self.conditions: list[Json] = [dict(c) for c in facts.job.status.get("conditions") or ()]
        self.started: str | None = facts.job.status.get("startTime")
        if self.started is None and not facts.suspended:
            self.started = rfc3339(now)
        self.active = len(facts.active)

    def decide(self) -> Decision:
        facts, decision = self.facts, self.decision
        decision.end = ending.ending(facts, self.now)
        if decision.end is not None:
            decision.delete = list(facts.active)
            self.active = 0
        else:
            left = ending.seconds_to_deadline(facts.job, self.now)
            if left is not None:
                self._look_again(left)
            self._go_on()
        self._count()
        if decision.end is not None and find_condition(self.conditions, decision.end.type) is None:
            self.conditions.append(condition(decision.end.type, "True", *decision.end[1:], self.now))
        decision.status = self._status()
        return decision

    def _go_on(self) -> None:
        facts, decision = self.facts, self.decision
        manages = not facts.job.is_being_deleted
        if manages:
            change = population.change(facts, decision.record, self.now)
            decision.create, decision.delete, decision.uncounted = change.create, change.delete, True
            self.active += len(change.create) - len(change.delete)
            if change.after is not None:
                self._look_again(change.after)
        enough = facts.succeeded > 0 if facts.completions is None else facts.succeeded >= facts.completions
        if enough and self.active == 0:
            decision.end = COMPLETED
        elif manages:
            self._note_suspension()

    def _look_again(self, seconds: float) -> None:
        self.decision.after = seconds if self.decision.after is None else min(self.decision.after, seconds)

    def _note_suspension(self) -> None:
        before = find_condition(self.conditions, "Suspended") or {}
        if self.facts.suspended and before.get("status") != "True":
            self._replace(condition("Suspended", "True", "JobSuspended", "Job suspended", self.now))
            self.decision.events.append(("Normal", "Suspended", "Job suspended"))
            self.started = None
        elif not self.facts.suspended and before.get("status") == "True":
            self._replace(condition("Suspended", "False", "JobResumed", "Job resumed", self.now))
            self.decision.events.append(("Normal", "Resumed", "Job resumed"))
            self.started = rfc3339(self.now)  # the deadline counts continuous activity only

    def _replace(self, new: Json) -> None:
        position = next((n for n, c in enumerate(self.conditions) if c.get("type") == new["type"]), None)
        if position is None:
            self.conditions.append(new)
        else:
            self.conditions[position] = new

    def _count(self) -> None:
        """Names the pods that have ended as uncounted, and lets go of everyone who needs no finalizer any more."""
        facts, decision = self.facts, self.decision
        uncounted = facts.uncounted
        gone = {pod.metadata.uid for pod in decision.delete} if decision.uncounted else set()
        tracked = {pod.metadata.uid for pod in facts.pods if is_tracked(pod)} - gone
        uncounted.count(tracked)
        for pod in facts.pods:
            uid = pod.metadata.uid
            if uid not in tracked or not self._may_go(pod):
                continue
            if len(decision.release) >= MOST_AT_ONCE:
                decision.leaves_some = True
                break
            decision.release.append(pod)
            if pod.phase == "Succeeded" and uid not in uncounted.failed:
                if not facts.indexed and uid not in uncounted.succeeded:
                    uncounted.succeeded.append(uid)
            elif self._fails(pod) and uid not in uncounted.failed:
                uncounted.failed.append(uid)
        decision.tracked = frozenset(tracked)

    def _fails(self, pod: ApiObject) -> bool:
        """Whether the pod counts as failed: with a Job that fails, every pod that has not ended does."""
        facts, end = self.facts, self.decision.end
        failed = facts.has_failed(pod) or (end is not None and end.type != SUCCESS)
        return failed and facts.has_valid_index(pod) and facts.counts(pod)

    def _may_go(self, pod: ApiObject) -> bool:
        facts = self.facts
        if facts.job.is_being_deleted or self.decision.end is not None or pod.phase == "Succeeded":
            return True
        index = index_of(pod)
        waits = facts.awaiting_replacement.get(index) if index is not None else None
        return facts.has_failed(pod) and (waits is None or waits.metadata.uid != pod.metadata.uid)

    def _status(self) -> Json:
        facts, decision = self.facts, self.decision
        doomed = {pod.metadata.uid for pod in decision.delete}
        status: Json = {
            "conditions": self.conditions,
            "startTime": self.started,
            "active": self.active,
            "ready": sum(pod.is_true("Ready") for pod in facts.active if pod.metadata.uid not in doomed),
            "terminating": len(facts.terminating) + len(doomed),
            "succeeded": len(facts.succeeded_indexes) if facts.indexed else facts.uncounted.succeeded_count,
            "failed": facts.uncounted.failed_count,
            "uncountedTerminatedPods": facts.uncounted.json(),
        }
        if facts.indexed:
            status["completedIndexes"] = indexes.write(facts.succeeded_indexes)
        if facts.limit_per_index is not None:
            status["failedIndexes"] = indexes.write(facts.failed_indexes)
        return stored(status)
