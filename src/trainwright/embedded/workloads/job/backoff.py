"""How long a Job waits before it replaces failed pods: 10 s, doubled with each failure since the last success."""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.objects import ApiObject

FIRST_SECONDS = 10.0
LAST_SECONDS = 600.0


def finished_at(pod: ApiObject) -> float:
    """When the pod ended: its last container's end, else the turn of Ready, else its own deletion or creation."""
    ends = [
        (status.get("state") or {}).get("terminated", {}).get("finishedAt")
        for status in pod.status.get("containerStatuses") or ()
    ]
    if ends and all(ends):
        return max(seconds_of(end) for end in ends if end)
    ready = pod.condition("Ready")
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return seconds_of(ready["lastTransitionTime"])
    stamp = pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp
    return seconds_of(stamp) if stamp else 0.0


def seconds_to_wait(failed: Iterable[ApiObject], succeeded: Iterable[ApiObject], now: float) -> float:
    """How long no replacement may be created yet; 0 when one may."""
    last_success = max(map(finished_at, succeeded), default=float("-inf"))
    failures = [at for at in map(finished_at, failed) if at > last_success]
    if not failures:
        return 0.0
    wait = min(FIRST_SECONDS * 2.0 ** min(len(failures) - 1, 10), LAST_SECONDS)
    return max(0.0, max(failures) + wait - now)
