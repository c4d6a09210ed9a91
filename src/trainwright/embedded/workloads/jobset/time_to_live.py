"""ttlSecondsAfterFinished: how long a finished JobSet is kept."""

from __future__ import annotations

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.objects import ApiObject


def seconds_left(job_set: ApiObject, now: float) -> float | None:
    """Seconds until the finished JobSet is to be deleted; None when it is kept."""
    ttl = job_set.spec.get("ttlSecondsAfterFinished")
    for type in ("Completed", "Failed"):
        condition = job_set.condition(type)
        if ttl is not None and condition is not None and condition["status"] == "True":
            return float(seconds_of(condition["lastTransitionTime"]) + ttl - now)
    return None
