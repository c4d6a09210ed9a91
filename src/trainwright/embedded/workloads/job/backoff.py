"""The back-off before a Job replaces failed pods: 10 s, doubled with each failure since the last success."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.objects import ApiObject

FIRST_SECONDS = 10.0
LAST_SECONDS = 600.0


def finished_at(pod: ApiObject) -> float:
    """The time at which the pod ended: when its last container ended, else when Ready changed, else when the pod was
    deleted or created.
    """
    ended = _containers_ended_at(pod)
    if ended is not None:
        return ended
    ready = pod.condition("Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return seconds_of(ready["lastTransitionTime"])
    if pod.metadata.deletion_timestamp:
        return seconds_of(pod.metadata.deletion_timestamp) - (pod.metadata.deletion_grace_period_seconds or 0)
    return seconds_of(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0


def _containers_ended_at(pod: ApiObject) -> float | None:
    """When the last container or sidecar ended; None if one has not, or if there is no word of any."""
    sidecars = {c.get("name") for c in pod.spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    statuses = list(pod.status.get("containerStatuses") or ())
    statuses += [s for s in pod.status.get("initContainerStatuses") or () if s.get("name") in sidecars]
    ends = [((status.get("state") or {}).get("terminated") or {}).get("finishedAt") for status in statuses]
    return max(seconds_of(end) for end in ends if end) if ends and all(ends) else None


class Record(NamedTuple):
    """The failures of a Job's pods since the last success, and when the last one was."""

    failures: int = 0
    last: float = 0.0

    def after(self, succeeded: Iterable[ApiObject], failed: Iterable[ApiObject]) -> Record:
        """The record with pods that have ended since."""
        ends = sorted(map(finished_at, failed))
        successes = list(map(finished_at, succeeded))
        if successes:
            since = [at for at in ends if at > max(successes)]
            return Record(len(since), since[-1]) if since else Record()
        return Record(self.failures + len(ends), ends[-1]) if ends else self

    def seconds_left(self, now: float) -> float:
        """Seconds until a replacement may be created; 0 when it may be created now."""
        if not self.failures:
            return 0.0
        wait = min(FIRST_SECONDS * 2.0 ** min(self.failures - 1, 10), LAST_SECONDS)
        return max(0.0, self.last + wait - now)
