"""Writes a TrainJob's status: last, bound to the version it was derived from, and only when it says something new.

What is not final can wait for a moment: while a job starts, one state follows the other within a second, and each
write wakes everybody who watches TrainJobs. So a difference is written at most `MERGE_SECONDS` after it was first
seen, with all that has come since. A condition, a problem or an end is written at once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trainwright.api.mergepatches import changed_members, status_patch
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import TrainJob, TrainJobStatus
from trainwright.client import Client
from trainwright.clock import Clock
from trainwright.controlloop import Key, OwnWrites, key_of
from trainwright.operator.applier import FIELD_MANAGER
from trainwright.operator.views import thin_train_job

MERGE_SECONDS = 1.0
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


class Statuses:
    """`jobs` remembers what we wrote until the watch shows it."""

    def __init__(self, client: Client, jobs: OwnWrites[TrainJob], clock: Clock) -> None:
        self._client = client
        self._jobs = jobs
        self._clock = clock
        self._due: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        self._due.pop(key, None)

    async def write(self, job: TrainJob, new: TrainJobStatus, *, at_once: bool = False) -> float | None:
        """Patches the status if it differs, or says in how many seconds to call again.

        `Conflict` when the TrainJob has changed since `job` was read.
        """
        patch = difference(job.status, new)
        if not patch:
            self.forget(key_of(job))
            return None
        now = self._clock.now()
        remaining = self._due.setdefault(key_of(job), now + MERGE_SECONDS) - now
        if remaining > 0 and not at_once and not AT_ONCE & patch.keys():
            return remaining
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
