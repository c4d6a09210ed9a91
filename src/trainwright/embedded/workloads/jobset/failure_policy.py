"""A JobSet's failurePolicy: the action of the first matching rule, else a restart while any are left, else failure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainwright.api.times import seconds_of
from trainwright.api.wellknown import REPLICATED_JOB
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json


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


def verdict(spec: Json, status: Json, failed: list[ApiObject]) -> Fail | Restart:
    """The action for failed Jobs, of which there is at least one."""
    policy = spec.get("failurePolicy")
    first = min(failed, key=_failed_at)
    if policy is None:
        return Fail("FailedJobs", _with(first, "jobset failed due to one or more job failures"))
    rule, job = _rule(policy.get("rules") or [], failed)
    action = rule["action"] if rule else "RestartJobSet"
    job = job or first
    if action == "FailJobSet":
        return Fail("FailJobSetFailurePolicyAction", _with(job, "applying FailJobSet failure policy action"))
    if action in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
        # Alpha in JobSet v0.12 and off there by default: refused, not ignored.
        return Fail("NotSupported", f"failure policy action {action} is not supported by the local cluster yet")
    counts = action == "RestartJobSet"
    if counts and status.get("restartsCountTowardsMax", 0) >= policy.get("maxRestarts", 0):
        return Fail("ReachedMaxRestarts", _with(job, "jobset failed due to reaching max number of restarts"))
    reason = f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy"
    message = _with(job, f"applying {action} failure policy action")
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
    if reasons and condition.get("reason") not in reasons:
        return False
    patterns = rule.get("onJobFailureMessagePatterns")
    if patterns and not any(_found(pattern, condition.get("message", "")) for pattern in patterns):
        return False
    parent, targets = job.metadata.label(REPLICATED_JOB), rule.get("targetReplicatedJobs")
    return bool(parent) and (not targets or parent in targets)


def _found(pattern: str, message: str) -> bool:
    try:
        return re.search(pattern, message) is not None
    except re.error:
        return False


def _failed_at(job: ApiObject) -> float:
    condition = job.condition("Failed")
    return seconds_of(condition["lastTransitionTime"]) if condition else float("inf")


def _with(job: ApiObject, message: str) -> str:
    return f"{message} (first failed job: {job.name})"
