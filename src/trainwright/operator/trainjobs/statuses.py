"""Writes a TrainJob's status: last, bound to the version it was derived from, and only when it says something new.

What is not final can wait for a moment: while a job starts, one state follows the other within a second, and each
write wakes everybody who watches TrainJobs. So a difference is written at most `MERGE_SECONDS` after it was first
seen, with all that has come since. A condition, a problem or an end is written at once.

In a burst of new TrainJobs the API server is what everybody waits for, and a status that only says "Pending" would take
a third of it. So while so many start, what is not final waits for longer, though never for more than `BURST_SECONDS`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from trainwright.api.mergepatches import changed_members, status_patch
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import TrainJob, TrainJobStatus
from trainwright.client import Client
from trainwright.clock import Clock
from trainwright.controlloop import Key, OwnWrites, key_of
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.stores.views import thin_train_job

MERGE_SECONDS = 1.0
BURST_SECONDS = 10.0
BURST_STARTS = 16
"""So many TrainJobs that start within a second are a burst."""
BURST_LOOK_SECONDS = 5.0
TOGETHER_SECONDS = 0.5
"""What waits in a burst is looked at in groups: a process that is woken for each by itself takes longer over it."""
AT_ONCE = frozenset(["conditions"])


def difference(old: TrainJobStatus | None, new: TrainJobStatus) -> dict[str, Any]:
    """The merge patch from one status to the other: changed members whole, vanished ones null, else empty."""
    if old == new:
        return {}
    before: dict[str, Any] = msgspec.to_builtins(old) if old is not None else {}
    after: dict[str, Any] = msgspec.to_builtins(new)
    patch = changed_members(before, after)
    patch.pop("trainerStatus", None)  # the progress server's alone
    return patch


def _together(now: float, seconds: float) -> float:
    """So many seconds, or a little less: up to the moment at which others are looked at, too."""
    group = (now + seconds) // TOGETHER_SECONDS * TOGETHER_SECONDS
    return group - now if group > now else seconds


class Statuses:
    """`jobs` remembers what we wrote until the watch shows it."""

    def __init__(self, client: Client, jobs: OwnWrites[TrainJob], clock: Clock) -> None:
        self._client = client
        self._jobs = jobs
        self._clock = clock
        self._first_seen: dict[Key, float] = {}  # differences that wait to be written
        self._starts: deque[float] = deque(maxlen=BURST_STARTS)  # when the last few TrainJobs were started

    def forget(self, key: Key) -> None:
        self._first_seen.pop(key, None)

    def job_starts(self) -> None:
        """A TrainJob is about to be given its workload."""
        self._starts.append(self._clock.now())

    @property
    def _is_burst(self) -> bool:
        return len(self._starts) == BURST_STARTS and self._clock.now() - self._starts[0] < 1.0

    async def write(self, job: TrainJob, new: TrainJobStatus, *, at_once: bool = False) -> float | None:
        """Patches the status if it differs, or says in how many seconds to call again.

        `Conflict` when the TrainJob has changed since `job` was read.
        """
        patch = difference(job.status, new)
        if not patch:
            self.forget(key_of(job))
            return None
        if not at_once and not AT_ONCE & patch.keys():
            now = self._clock.now()
            first_seen = self._first_seen.setdefault(key_of(job), now)
            # Compared as times, not as durations: a timer for `due - now` then ends at `due`, rounded as it is here.
            if now < (due := first_seen + BURST_SECONDS) and self._is_burst:
                return _together(now, min(BURST_LOOK_SECONDS, due - now))
            if now < (due := first_seen + MERGE_SECONDS):
                return due - now
        self.forget(key_of(job))
        await self._patch(job, patch)
        return None

    async def release_workload(self, job: TrainJob) -> None:
        """The job has no workload from now on, and may be given another one."""
        await self._patch(job, {"workloadUID": None})

    async def _patch(self, job: TrainJob, patch: dict[str, Any]) -> None:
        written = await self._client.patch(
            TRAIN_JOBS,
            status_patch(job.metadata, patch),
            name=job.metadata.name,
            namespace=job.metadata.namespace,
            subresource="status",
            field_manager=FIELD_MANAGER,
            decode=TrainJob,
        )
        self._jobs.remember(thin_train_job(written))
