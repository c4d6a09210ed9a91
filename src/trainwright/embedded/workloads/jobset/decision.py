"""Decides what the JobSet controller does next: a pure function of the JobSet, its Jobs and the time.

In: the JobSet, every Job it controls, whether its service exists, seconds since the epoch. Out: a `Decision`. It reads
as JobSet's own checklist: count, clean up a finished JobSet, delete Jobs of earlier attempts, failure policy, success
policy, service and claims, scaling, Jobs in order of dependencies and start-up policy, suspend or resume.
The status is written once, last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.api.events import EventType
from trainwright.api.wellknown import REPLICATED_JOB
from trainwright.embedded.workloads.features import DEFAULTS, Features
from trainwright.embedded.workloads.job.decision import is_finished as is_job_finished
from trainwright.embedded.workloads.jobset import (
    children,
    depends_on,
    failure_policy,
    job_restarts,
    scaling,
    startup_policy,
    success_policy,
    time_to_live,
    volume_claims,
)
from trainwright.embedded.workloads.jobset.conditions import RESTARTING, Conditions
from trainwright.embedded.workloads.jobset.defaults import defaulted
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json


@dataclass(slots=True)
class Decision:
    """What to do, in this order, and the status to store at the end."""

    delete: list[ApiObject] = field(default_factory=list)
    service: Json | None = None
    claims: list[Json] = field(default_factory=list)
    scale: list[tuple[ApiObject, Json]] = field(default_factory=list)
    create: list[Json] = field(default_factory=list)
    suspend: list[ApiObject] = field(default_factory=list)
    resume: list[tuple[ApiObject, Json]] = field(default_factory=list)
    delete_self: bool = False
    after: float | None = None
    status: Json = field(default_factory=dict)
    events: list[tuple[EventType, str, str]] = field(default_factory=list)


def decide(
    job_set: ApiObject, jobs: list[ApiObject], *, has_service: bool, now: float, gates: Features = DEFAULTS
) -> Decision:
    """The next step of a JobSet that is not being deleted. Raises `BadLabel` or `GateOff` where JobSet gives up too."""
    return _Step(job_set, jobs, has_service, now, gates).decide()


class _Step:
    def __init__(
        self, job_set: ApiObject, jobs: list[ApiObject], has_service: bool, now: float, gates: Features
    ) -> None:
        self.job_set = job_set
        self.gates = gates
        self.now = now
        self.has_service = has_service
        self.spec = defaulted(job_set.spec)
        self.suspended = bool(self.spec.get("suspend"))
        self.status: Json = {"restarts": 0, **job_set.status}
        self.conditions = Conditions(now, [dict(c) for c in job_set.status.get("conditions") or ()])
        self.decision = Decision()
        # Jobs of earlier attempts are being deleted and belong to none of the other lists.
        self.previous = [job for job in jobs if self._is_outdated(job)]
        outdated = {job.metadata.uid for job in self.previous}
        current = [job for job in jobs if job.metadata.uid not in outdated]
        self.failed = [job for job in current if job.is_true("Failed")]
        self.succeeded = [job for job in current if job.is_true("Complete")]
        self.active = [job for job in current if not is_job_finished(job)]
        self.existing = {job.name for job in jobs}

    def _is_outdated(self, job: ApiObject) -> bool:
        if job_restarts.number(job, children.RESTART_ATTEMPT) < self.job_set.status.get("restarts", 0):
            return True
        return self.gates.restart_job and job_restarts.is_outdated(self.spec, self.job_set.status, job)

    def decide(self) -> Decision:
        self.statuses = self._count()
        # In JobSet's own order (by name, descending), so that an unchanged status compares equal.
        self.status["replicatedJobsStatus"] = [self.statuses[name] for name in sorted(self.statuses, reverse=True)]
        self._step()
        self.status["conditions"] = self.conditions.items
        self.decision.status = {key: value for key, value in self.status.items() if value not in ([], None)}
        self.decision.events += self.conditions.events
        return self.decision

    def _step(self) -> None:
        if self.conditions.is_true("Completed") or self.conditions.is_true("Failed"):
            self._clean_up()
            return
        self.decision.delete = [job for job in self.previous if not job.is_being_deleted]
        if not self.suspended and self._all_ready():
            self.conditions.set(RESTARTING, true=False, reason="JobsReady", message="all jobs are ready")
        if self.failed:
            self._apply_failure_policy()
            return
        if self.succeeded and success_policy.is_met(self.spec, self.succeeded):
            self.conditions.complete()
            self.status["terminalState"] = "Completed"
            return
        if self.spec["network"]["enableDNSHostnames"] and not self.has_service:
            self.decision.service = children.service(self.job_set, self.spec)
        self.decision.claims = volume_claims.claims(self.job_set, self.spec)
        if self.gates.elastic_job_set:
            self._scale()
        self._create_jobs()
        if self.suspended:
            self.decision.suspend = [job for job in self.active if not job.spec.get("suspend")]
            self.conditions.suspend()
        else:
            self._resume_jobs()

    def _clean_up(self) -> None:
        self.decision.delete = [job for job in self.active if not job.is_being_deleted]
        left = time_to_live.seconds_left(self.job_set, self.now)
        if left is not None and left <= 0:
            self.decision.delete_self = True
        else:
            self.decision.after = left

    def _count(self) -> dict[str, Json]:
        """A status for each replicated job, by name."""
        counts: dict[str, Json] = {}
        for replicated in self.spec["replicatedJobs"]:
            zero = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
            counts[replicated["name"]] = {"name": replicated["name"], **zero}
        for job in self.active:
            of = counts.get(job.metadata.label(REPLICATED_JOB) or "")
            if of is None:
                continue
            status = job.status
            pods: int = job.spec.get("parallelism", 1)
            pods = min(pods, job.spec.get("completions", pods))
            of["ready"] += status.get("succeeded", 0) + status.get("ready", 0) >= pods
            of["active"] += status.get("active", 0) > 0
            of["suspended"] += bool(job.spec.get("suspend"))
        for field_name, jobs in (("succeeded", self.succeeded), ("failed", self.failed)):
            for job in jobs:
                of = counts.get(job.metadata.label(REPLICATED_JOB) or "")
                if of is not None:
                    of[field_name] += 1
        if self.gates.restart_job:
            for entry in self.job_set.status.get("replicatedJobsStatus") or ():
                kept = {key: entry[key] for key in (job_restarts.ALL, job_restarts.COUNTED) if entry.get(key)}
                counts.get(entry.get("name", ""), {}).update(kept)
        return counts

    def _all_ready(self) -> bool:
        total = sum(replicated["replicas"] for replicated in self.spec["replicatedJobs"])
        return bool(total == sum(status["ready"] + status["succeeded"] for status in self.statuses.values()))

    def _apply_failure_policy(self) -> None:
        verdict = failure_policy.verdict(self.spec, self.status, self.failed, self.gates)
        if isinstance(verdict, failure_policy.Fail):
            self.conditions.fail(verdict.reason, verdict.message)
            self.status["terminalState"] = "Failed"
            return
        self.decision.events.append(("Warning", verdict.event_reason, verdict.message))
        if isinstance(verdict, failure_policy.RestartJob):
            job_restarts.restart(self.spec, self.statuses, verdict.job, counts=verdict.counts)
            return
        self.status["restarts"] = self.status.get("restarts", 0) + 1
        if verdict.counts:
            self.status["restartsCountTowardsMax"] = self.status.get("restartsCountTowardsMax", 0) + 1
        self.conditions.set(
            RESTARTING, true=True, reason=verdict.condition_reason, message=verdict.message, warning=True
        )

    def _scale(self) -> None:
        templates = {replicated["name"]: replicated for replicated in self.spec["replicatedJobs"]}
        for job in self.active:
            template = templates.get(job.metadata.label(REPLICATED_JOB) or "")
            change = scaling.patch(job, template) if template is not None else None
            if change is not None:
                self.decision.scale.append((job, change))

    def _create_jobs(self) -> None:
        """Creates the missing Jobs that dependencies and start-up order let begin."""
        in_order = startup_policy.is_in_order(self.spec) and not self.suspended
        blocking = (self.spec.get("failurePolicy") or {}).get("restartStrategy") == "BlockingRecreate"
        for replicated in self.spec["replicatedJobs"]:
            if not depends_on.is_met(replicated, self.spec, self.statuses):
                continue
            if in_order and startup_policy.has_started(replicated, self.statuses[replicated["name"]]):
                continue
            if not (blocking and self.previous):
                self.decision.create += self._missing(replicated)
            if in_order:
                self.conditions.start_in_order()
                return
        if in_order:
            self.conditions.started_in_order()

    def _missing(self, replicated: Json) -> list[Json]:
        """Whether a Job of an earlier attempt still has the name: it is free when that Job and its pods are deleted."""
        return [
            children.job(self.job_set, self.spec, replicated, index, self.gates)
            for index in range(replicated["replicas"])
            if children.job_name(self.job_set, replicated["name"], index) not in self.existing
        ]

    def _resume_jobs(self) -> None:
        in_order = startup_policy.is_in_order(self.spec)
        for replicated in self.spec["replicatedJobs"]:
            if not depends_on.is_met(replicated, self.spec, self.statuses):
                continue
            if in_order and startup_policy.has_started(replicated, self.statuses[replicated["name"]]):
                continue
            for job in self.active:
                if job.metadata.label(REPLICATED_JOB) == replicated["name"] and job.spec.get("suspend"):
                    self.decision.resume.append((job, children.resumed(job, replicated)))
            if in_order:
                self.conditions.start_in_order()
                return
        self.conditions.resume()
