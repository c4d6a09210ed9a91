"""A JobSet's failurePolicy: the action of the first matching rule, else a restart while any are left, else failure."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.api.wellknown import REPLICATED_JOB
from trainwright.embedded.workloads.features import Features
from trainwright.embedded.workloads.job.pods import REFUSED
from trainwright.embedded.workloads.jobset import job_restarts
from trainwright.embedded.workloads.objects import ApiObject, changed_at
from trainwright.schema.errors import SchemaError
from trainwright.schema.jsonobject import Json
from trainwright.schema.regex import compile_regex


@dataclass(frozen=True, slots=True)
class Fail:
    """The JobSet ends."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Restart:
    """Create all Jobs again. `counts`: the restart counts towards maxRestarts."""

    counts: bool
    condition_reason: str
    event_reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RestartJob:
    """Create this Job again. `counts`: the restart counts towards maxRestarts."""

    job: ApiObject
    counts: bool
    event_reason: str
    message: str


class GateOff(Exception):
    """The rule's action belongs to a gate that is off."""


def verdict(spec: Json, status: Json, failed: list[ApiObject], gates: Features) -> Fail | Restart | RestartJob:
    """The action for failed Jobs, of which there is at least one."""
    policy = spec.get("failurePolicy")
    first = min(failed, key=_failed_at)
    for one in failed:
        condition = one.condition("Failed") or {}
        if condition.get("reason") == REFUSED:  # a restart would be refused in the same way
            return Fail(REFUSED, _with(one, str(condition.get("message"))))
    if policy is None:
        return Fail("FailedJobs", _with(first, "jobset failed due to one or more job failures"))
    rule, job = _rule(policy.get("rules") or [], failed)
    action = rule["action"] if rule else "RestartJobSet"
    job = job or first
    if action == "FailJobSet":
        return Fail("FailJobSetFailurePolicyAction", _with(job, "applying FailJobSet failure policy action"))
    counts = not action.endswith("AndIgnoreMaxRestarts")
    alone = action.startswith("RestartJob") and not action.startswith("RestartJobSet")
    if alone and not gates.restart_job:
        raise GateOff(f"{action} failure policy action cannot be used when the feature gate RestartJob is disabled")
    so_far = job_restarts.total_towards_max(status) if gates.restart_job else status.get("restartsCountTowardsMax", 0)
    if counts and so_far >= policy.get("maxRestarts", 0):
        return Fail("ReachedMaxRestarts", _with(job, "jobset failed due to reaching max number of restarts"))
    message = _with(job, f"applying {action} failure policy action")
    if alone:
        return RestartJob(job, counts, f"{action}FailurePolicyAction", message)
    reason = f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy"
    return Restart(counts, reason, f"{action}FailurePolicyAction", message)


def _rule(rules: list[Json], failed: list[ApiObject]) -> tuple[Json | None, ApiObject | None]:
    """The first rule that matches a failed Job, and of the Jobs it matches the one that failed first."""
    for rule in rules:
        matching = [job for job in failed if _applies(rule, job)]
        if matching:
            return rule, min(matching, key=_failed_at)
    return None, None


def _applies(rule: Json, job: ApiObject) -> bool:
    condition = job.condition("Failed") or {}
    reasons = rule.get("onJobFailureReasons")
    if reasons and condition.get("reason", "") not in reasons:
        return False
    patterns = rule.get("onJobFailureMessagePatterns")
    if patterns and not any(_found(pattern, condition.get("message", "")) for pattern in patterns):
        return False
    parent, targets = job.metadata.label(REPLICATED_JOB), rule.get("targetReplicatedJobs")
    return bool(parent) and (not targets or parent in targets)


def _found(pattern: str, message: str) -> bool:
    try:
        return compile_regex(pattern).search(message) is not None
    except SchemaError:
        return False


def _failed_at(job: ApiObject) -> float:
    condition = job.condition("Failed")
    return changed_at(condition) if condition else float("inf")


def _with(job: ApiObject, message: str) -> str:
    return f"{message} (first failed job: {job.name})"
