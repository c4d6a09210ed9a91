"""ttlSecondsAfterFinished: how long a finished JobSet is kept."""

from __future__ import annotations

from trainwright.embedded.workloads.objects import ApiObject, changed_at


def seconds_left(job_set: ApiObject, now: float) -> float | None:
    """Seconds until the finished JobSet is to be deleted; None when it is kept."""
    ttl = job_set.spec.get("ttlSecondsAfterFinished")
    for type in ("Completed", "Failed"):
        condition = job_set.condition(type)
        if ttl is not None and condition is not None and condition.get("status") == "True":
            if not condition.get("lastTransitionTime"):
                return None  # nobody knows since when
            return float(changed_at(condition) + ttl - now)
    return None
