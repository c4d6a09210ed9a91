"""The back-off before a Job replaces failed pods: 10 s, doubled with each failure since the last success."""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.objects import ApiObject

FIRST_SECONDS = 10.0
LAST_SECONDS = 600.0


def finished_at(pod: ApiObject) -> float:
    """The time at which the pod ended: when its last container ended, else when Ready changed, else when the pod was
    deleted or created.
    """
    ends = [
        ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for status in pod.status.get("containerStatuses") or ()
    ]
    if ends and all(ends):
        return max(seconds_of(end) for end in ends if end)
    ready = pod.condition("Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return seconds_of(ready["lastTransitionTime"])
    stamp = pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp
    return seconds_of(stamp) if stamp else 0.0


def seconds_to_wait(failed: Iterable[ApiObject], succeeded: Iterable[ApiObject], now: float) -> float:
    """Seconds until a replacement may be created; 0 when it may be created now."""
    last_success = max(map(finished_at, succeeded), default=float("-inf"))
    failures = [at for at in map(finished_at, failed) if at > last_success]
    if not failures:
        return 0.0
    wait = min(FIRST_SECONDS * 2.0 ** min(len(failures) - 1, 10), LAST_SECONDS)
    return max(0.0, max(failures) + wait - now)
