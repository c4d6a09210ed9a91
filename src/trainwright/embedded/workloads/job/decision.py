"""Decides what the Job controller does next: a pure function of the Job, its pods and the time.

In: the Job, every pod it controls, seconds since the epoch. Out: a `Decision`. It does not depend on having seen an
event, and carrying it out twice is harmless: pods to create have fixed names, pods to delete are identified by uid.
Pods that this controller deletes (suspension, scaling down) do not count as failures; pods that fail do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.api.events import EventType
from trainwright.api.times import rfc3339, seconds_of
from trainwright.embedded.workloads.job import backoff, indexes, pod_failure_policy, pods, success_policy
from trainwright.embedded.workloads.objects import ApiObject, find_condition
from trainwright.schema.jsonobject import Json

MAX_PODS_AT_ONCE = 500
"""How many pods one decision creates or deletes at most."""


@dataclass(frozen=True, slots=True)
class PodToCreate:
    """A pod by its name and index. `failures`: how often its index failed before, if the Job counts that."""

    name: str
    index: int | None
    failures: int | None = None


@dataclass(slots=True)
class Decision:
    """Pods to create and to delete, the status to store, when to reconcile again, and events."""

    create: list[PodToCreate] = field(default_factory=list)
    delete: list[ApiObject] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    after: float | None = None
    events: list[tuple[EventType, str, str]] = field(default_factory=list)


def is_finished(job: ApiObject) -> bool:
    return job.is_true("Complete") or job.is_true("Failed")


def decide(job: ApiObject, owned: list[ApiObject], now: float) -> Decision:
    """The next step of a Job that is neither finished nor being deleted."""
    return _Step(job, owned, now).decide()


class _Step:
    """One evaluation: facts first, then the end states in Kubernetes' order, then pods, then status."""

    def __init__(self, job: ApiObject, owned: list[ApiObject], now: float) -> None:
        spec = job.spec
        self.job = job
        self.now = now
        self.indexed = spec.get("completionMode") == "Indexed"
        self.parallelism: int = spec.get("parallelism", 1)
        self.completions: int | None = spec.get("completions", 1 if "parallelism" not in spec else None)
        self.suspended = bool(spec.get("suspend"))
        self.conditions: list[Json] = [dict(condition) for condition in job.status.get("conditions") or ()]
        self.decision = Decision()
        if self.indexed and self.completions is None:
            self.completions = self.parallelism
        self.pods = [pod for pod in owned if not self.indexed or self._has_index(pod)]
        self.active = [p for p in self.pods if p.phase not in ("Succeeded", "Failed") and not p.is_being_deleted]
        self.terminating = [p for p in self.pods if p.is_being_deleted and p.phase not in ("Succeeded", "Failed")]
        self.succeeded_pods = [p for p in self.pods if p.phase == "Succeeded"]
        policy = spec.get("podFailurePolicy")
        self.failures = {
            p.metadata.uid: pod_failure_policy.match(policy, p)
            for p in self.pods
            if p.phase == "Failed" and not p.is_being_deleted
        }
        self.failed_pods = [p for p in self.pods if p.metadata.uid in self.failures]
        self._count()

    def _has_index(self, pod: ApiObject) -> bool:
        index = pods.index_of(pod)
        return index is not None and index < (self.completions or 0)

    def _count(self) -> None:
        """Counters only grow: a pod that was counted stays counted after it is deleted."""
        status = self.job.status
        counted = [p for p in self.failed_pods if self.failures[p.metadata.uid].action != "Ignore"]
        self.failed = max(status.get("failed", 0), len(counted))
        self.succeeded_indexes: set[int] = set()
        self.failed_indexes: set[int] = set()
        if self.indexed:
            assert self.completions is not None
            done = indexes.parse(status.get("completedIndexes"), self.completions)
            self.succeeded_indexes = done | {
                index for p in self.succeeded_pods if (index := pods.index_of(p)) is not None
            }
            self.succeeded = len(self.succeeded_indexes)
            self.failed_indexes = self._failed_indexes(counted)
        else:
            self.succeeded = max(status.get("succeeded", 0), len(self.succeeded_pods))

    def _failed_indexes(self, counted: list[ApiObject]) -> set[int]:
        limit = self.job.spec.get("backoffLimitPerIndex")
        if limit is None:
            return set()
        assert self.completions is not None
        found = indexes.parse(self.job.status.get("failedIndexes"), self.completions)
        failures: dict[int, int] = {}
        for pod in counted:
            index = pods.index_of(pod)
            assert index is not None
            failures[index] = failures.get(index, 0) + 1
            if self.failures[pod.metadata.uid].action == "FailIndex":
                found.add(index)
        return (found | {index for index, count in failures.items() if count > limit}) - self.succeeded_indexes

    def decide(self) -> Decision:
        started = self.job.status.get("startTime")
        if started is None and not self.suspended:
            started = rfc3339(self.now)
        self.started = started
        end = self._end()
        if end is not None:
            self._finish(*end)
        else:
            self._manage_pods()
            if self._is_complete():
                self._finish("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")
            else:
                self._note_suspension()
        self.decision.status = self._status()
        return self.decision

    def _end(self) -> tuple[str, str, str] | None:
        """How the Job ends, if it does: as decided before, else by failures, else by early success."""
        for type in ("SuccessCriteriaMet", "FailureTarget"):
            before = find_condition(self.conditions, type)
            if before is not None and before.get("status") == "True":
                return type, before.get("reason", ""), before.get("message", "")
        for match in self.failures.values():
            if match.action == "FailJob":
                return "FailureTarget", "PodFailurePolicy", match.message
        for pod in self.failed_pods:
            if (why := pods.refusal(pod)) is not None:
                return "FailureTarget", pods.REFUSED, f"pod {pod.name} was refused: {why}"
        spec = self.job.spec
        limit = spec.get("backoffLimit", 6 if "backoffLimitPerIndex" not in spec else 2**31 - 1)
        if self.failed > limit or self._restarted_too_often(limit):
            return "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if (left := self._seconds_to_deadline()) is not None:
            if left <= 0:
                return "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
            self._look_again(left)
        if self.indexed:
            assert self.completions is not None
            most = spec.get("maxFailedIndexes")
            if most is not None and len(self.failed_indexes) > most:
                message = "Job has exceeded the specified maximal number of failed indexes"
                return "FailureTarget", "MaxFailedIndexesExceeded", message
            if self.failed_indexes and len(self.failed_indexes | self.succeeded_indexes) >= self.completions:
                return "FailureTarget", "FailedIndexes", "Job has failed indexes"
            why = success_policy.met(spec.get("successPolicy"), self.completions, self.succeeded_indexes)
            if why is not None:
                return "SuccessCriteriaMet", "SuccessPolicy", why
        return None

    def _restarted_too_often(self, limit: int) -> bool:
        """With restartPolicy OnFailure containers fail but their pod does not, so the limit counts their restarts."""
        if ((self.job.spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
            return False
        restarts: int = sum(
            status.get("restartCount", 0)
            for pod in self.pods
            if pod.phase in ("Running", "Pending")
            for kind in ("initContainerStatuses", "containerStatuses")
            for status in pod.status.get(kind) or ()
        )
        return restarts > 0 if limit == 0 else restarts >= limit

    def _seconds_to_deadline(self) -> float | None:
        deadline = self.job.spec.get("activeDeadlineSeconds")
        if deadline is None or self.suspended or self.started is None:
            return None
        return float(seconds_of(self.started) + deadline - self.now)

    def _look_again(self, seconds: float) -> None:
        self.decision.after = seconds if self.decision.after is None else min(self.decision.after, seconds)

    def _finish(self, type: str, reason: str, message: str) -> None:
        """Deletes every pod; when none is left, the interim condition becomes the final one."""
        if find_condition(self.conditions, type) is None:
            self._add_condition(type, "True", reason, message)
        if type == "FailureTarget":
            # Every pod that did not finish counts as failed with the Job.
            self.failed = max(self.failed, len(self.failed_pods) + len(self.active) + len(self.terminating))
        self._delete(self.active)
        if self.terminating:
            return
        if type == "FailureTarget":
            self._add_condition("Failed", "True", reason, message)
            self.decision.events.append(("Warning", reason, message))
        else:
            self._add_condition("Complete", "True", reason, message)
            self.completed_at = rfc3339(self.now)
            self.decision.events.append(("Normal", "Completed", "Job completed"))

    completed_at: str | None = None

    def _is_complete(self) -> bool:
        if self.active or self.decision.create or self.terminating:
            return False
        return self.succeeded > 0 if self.completions is None else self.succeeded >= self.completions

    def _manage_pods(self) -> None:
        """Creates missing pods or deletes surplus ones, never both at once."""
        if self.suspended:
            self._delete(self.active)
            return
        wanted = self._wanted()
        surplus = self._surplus(wanted)
        if surplus:
            self._delete(surplus[:MAX_PODS_AT_ONCE])
            return
        missing = wanted - len(self.active)
        if self._waits_for_end_of_old_pods():
            missing -= len(self.terminating)
        if missing > 0:
            self._create(min(missing, MAX_PODS_AT_ONCE))

    def _wanted(self) -> int:
        if self.completions is None:
            return len(self.active) if self.succeeded else self.parallelism
        return max(0, min(self.completions - self.succeeded - len(self.failed_indexes), self.parallelism))

    def _surplus(self, wanted: int) -> list[ApiObject]:
        """The surplus pods: duplicates of an index, pods of finished indexes, then the least advanced ones."""
        surplus: list[ApiObject] = []
        left = sorted(self.active, key=lambda pod: (pod.is_true("Ready"), pod.phase == "Running"), reverse=True)
        if self.indexed:
            seen = self.succeeded_indexes | self.failed_indexes
            kept: list[ApiObject] = []
            for pod in left:
                index = pods.index_of(pod)
                assert index is not None
                (surplus if index in seen else kept).append(pod)
                seen = seen | {index}
            left = kept
        return surplus + (left[wanted:] if len(left) > wanted else [])

    def _waits_for_end_of_old_pods(self) -> bool:
        spec = self.job.spec
        return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None

    def _create(self, count: int) -> None:
        taken = {pod.name for pod in self.pods}
        if "backoffLimitPerIndex" not in self.job.spec:
            wait = backoff.seconds_to_wait(self.failed_pods, self.succeeded_pods, self.now)
            if wait > 0:
                self._look_again(wait)
                return
        for index in self._pending_indexes(count) if self.indexed else [None] * count:
            name = pods.pod_name(self.job, index, taken)
            taken.add(name)
            failures = None
            if "backoffLimitPerIndex" in self.job.spec:
                failures = sum(pods.index_of(pod) == index for pod in self.failed_pods)
            self.decision.create.append(PodToCreate(name, index, failures))

    def _pending_indexes(self, count: int) -> list[int | None]:
        assert self.completions is not None
        busy = {pods.index_of(pod) for pod in self.active} | self.succeeded_indexes | self.failed_indexes
        if self._waits_for_end_of_old_pods():
            busy |= {pods.index_of(pod) for pod in self.terminating}
        per_index = "backoffLimitPerIndex" in self.job.spec
        found: list[int | None] = []
        for index in range(self.completions):
            if len(found) == count:
                break
            if index in busy:
                continue
            if per_index:
                failed = [pod for pod in self.failed_pods if pods.index_of(pod) == index]
                wait = backoff.seconds_to_wait(failed, (), self.now)
                if wait > 0:
                    self._look_again(wait)
                    continue
            found.append(index)
        return found

    def _delete(self, doomed: list[ApiObject]) -> None:
        self.decision.delete = list(doomed)
        gone = {pod.metadata.uid for pod in doomed}
        self.active = [pod for pod in self.active if pod.metadata.uid not in gone]
        self.terminating = self.terminating + list(doomed)

    def _note_suspension(self) -> None:
        before = find_condition(self.conditions, "Suspended")
        if self.suspended:
            if before is None or before.get("status") != "True":
                self._set_condition("Suspended", "True", "JobSuspended", "Job suspended")
                self.decision.events.append(("Normal", "Suspended", "Job suspended"))
            self.started = None
        elif before is not None and before.get("status") == "True":
            self._set_condition("Suspended", "False", "JobResumed", "Job resumed")
            self.started = rfc3339(self.now)  # the deadline counts continuous activity only
            self.decision.events.append(("Normal", "Resumed", "Job resumed"))

    def _add_condition(self, type: str, status: str, reason: str, message: str) -> None:
        times = {"lastProbeTime": rfc3339(self.now), "lastTransitionTime": rfc3339(self.now)}
        self.conditions.append({"type": type, "status": status, **times, "reason": reason, "message": message})

    def _set_condition(self, type: str, status: str, reason: str, message: str) -> None:
        self.conditions = [condition for condition in self.conditions if condition.get("type") != type]
        self._add_condition(type, status, reason, message)

    def _status(self) -> Json:
        ready = sum(pod.is_true("Ready") for pod in self.active)
        status: Json = {
            "conditions": self.conditions,
            "startTime": self.started,
            "completionTime": self.completed_at,
            "active": len(self.active) + len(self.decision.create),
            "ready": ready,
            "terminating": len(self.terminating),
            "succeeded": self.succeeded,
            "failed": self.failed,
            "uncountedTerminatedPods": {},
        }
        if self.indexed:
            status["completedIndexes"] = indexes.write(self.succeeded_indexes)
            if "backoffLimitPerIndex" in self.job.spec:
                status["failedIndexes"] = indexes.write(self.failed_indexes)
        # As the API server stores it: empty fields are absent, except for the counters that are always written.
        always = ("ready", "terminating", "uncountedTerminatedPods")
        return {key: value for key, value in status.items() if key in always or value not in (None, 0, "", [])}
