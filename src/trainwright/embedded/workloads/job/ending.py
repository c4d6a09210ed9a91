"""How a Job ends: as decided before, else by failures, else by early success, in Kubernetes' order. Pure."""

from __future__ import annotations

from typing import NamedTuple

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.job import pods, success_policy
from trainwright.embedded.workloads.job.facts import Facts
from trainwright.embedded.workloads.objects import ApiObject

SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"
FINAL = {SUCCESS: "Complete", FAILURE: "Failed"}


class End(NamedTuple):
    """The interim condition with which a Job ends; when all its pods have ended, the final one of `FINAL` follows."""

    type: str
    reason: str
    message: str


COMPLETED = End(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")


def ending(facts: Facts, now: float) -> End | None:
    """The end of the Job, if it has come."""
    for type in (SUCCESS, FAILURE):
        before = facts.job.condition(type)
        if before is not None and before.get("status") == "True":
            return End(type, before.get("reason", ""), before.get("message", ""))
    return _by_pods(facts) or _by_limits(facts, now) or _by_indexes(facts)


def seconds_to_deadline(job: ApiObject, now: float) -> float | None:
    """Seconds until activeDeadlineSeconds are over; None for a Job that has no deadline or is suspended."""
    deadline, started = job.spec.get("activeDeadlineSeconds"), job.status.get("startTime")
    if deadline is None or job.spec.get("suspend"):
        return None
    return float((seconds_of(started) if started else now) + deadline - now)


def _by_pods(facts: Facts) -> End | None:
    failed = [pod for pod in facts.pods if facts.has_failed(pod)]
    for pod in failed:
        match = facts.match(pod)
        if match.action == "FailJob":
            return End(FAILURE, "PodFailurePolicy", match.message)
    for pod in failed:
        if (why := pods.refusal(pod)) is not None:
            return End(FAILURE, pods.REFUSED, f"pod {pod.name} was refused: {why}")
    return None


def _by_limits(facts: Facts, now: float) -> End | None:
    spec = facts.job.spec
    limit = spec.get("backoffLimit", 6 if "backoffLimitPerIndex" not in spec else 2**31 - 1)
    if facts.failed > limit or _restarted_too_often(facts, limit):
        return End(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = seconds_to_deadline(facts.job, now)
    if left is not None and left <= 0:
        return End(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _restarted_too_often(facts: Facts, limit: int) -> bool:
    """With restartPolicy OnFailure containers fail but their pod does not, so the limit counts their restarts."""
    if ((facts.job.spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts: int = sum(
        status.get("restartCount", 0)
        for pod in facts.pods
        if pod.phase in ("Running", "Pending")
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in pod.status.get(kind) or ()
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def _by_indexes(facts: Facts) -> End | None:
    if not facts.indexed:
        return None
    assert facts.completions is not None
    spec, failed = facts.job.spec, len(facts.failed_indexes)
    most = spec.get("maxFailedIndexes")
    if facts.limit_per_index is not None:
        if most is not None and failed > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return End(FAILURE, "MaxFailedIndexesExceeded", message)
        if failed and failed + len(facts.succeeded_indexes) >= facts.completions:
            return End(FAILURE, "FailedIndexes", "Job has failed indexes")
    why = success_policy.met(spec.get("successPolicy"), facts.completions, facts.succeeded_indexes)
    return End(SUCCESS, "SuccessPolicy", why) if why is not None else None
