"""What is left to do for a TrainJob that has ended: its workload must not run on, and its time to live may be over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import moment_of
from trainwright.api.trainjob import COMPLETE, FAILED, TrainJob
from trainwright.client import Client, DeleteOptions, NotFound
from trainwright.controlloop import After, Done, Key, Outcome
from trainwright.operator.runtimes.revisions import TTL_ANNOTATION, revision_of
from trainwright.operator.stores.views import Views
from trainwright.pipeline import Workload
from trainwright.pipeline.workload import LIFETIME_ANNOTATION

CLEAN_UP_SECONDS = 10.0


class Ending:
    def __init__(self, client: Client, views: Views, now: Callable[[], datetime]) -> None:
        self._client = client
        self._views = views
        self._now = now

    async def clean_up(self, job: TrainJob, workload: Workload | None) -> Outcome:
        """Repeats until nothing of the job runs; then its time to live counts."""
        if workload is not None and not workload.status.is_finished:
            if not workload.metadata.is_being_deleted:
                await delete_workload(self._client, workload, as_seen=True)
            return After(CLEAN_UP_SECONDS)
        remaining = self._time_to_live(job, workload)
        if remaining is None or remaining > 0:
            rest = await self._end_workload(job, workload)
            waits = [seconds for seconds in (remaining, rest) if seconds is not None]
            return After(min(waits)) if waits else Done()
        options = DeleteOptions(
            uid=job.metadata.uid, resource_version=job.metadata.resource_version, propagation="Background"
        )
        try:
            await self._client.delete(TRAIN_JOBS, job.metadata.name, job.metadata.namespace, options)
        except NotFound:
            pass
        return Done()

    async def _end_workload(self, job: TrainJob, workload: Workload | None) -> float | None:
        """Deletes the workload when its time to live is over; else the seconds until then, if it has one."""
        if workload is None or workload.metadata.is_being_deleted:
            return None
        remaining = self._remaining(job, workload.metadata.annotation(LIFETIME_ANNOTATION))
        if remaining is None or remaining > 0:
            return remaining
        await delete_workload(self._client, workload)
        return None

    def _time_to_live(self, job: TrainJob, workload: Workload | None) -> float | None:
        """Seconds until the finished job is to be deleted; None when it is to stay."""
        text = job.metadata.annotation(TTL_ANNOTATION) or self._time_to_live_of_runtime(job, workload)
        return self._remaining(job, text)

    def _remaining(self, job: TrainJob, lifetime: str | None) -> float | None:
        """Seconds left of a time that runs from the job's end; None where there is no such time."""
        if lifetime is None or not lifetime.isdecimal():
            return None
        end = next((c for kind in (COMPLETE, FAILED) if (c := job.condition(kind)) and c.is_true), None)
        if end is None:
            return None
        lived = (self._now() - moment_of(end.last_transition_time)).total_seconds()
        return max(0.0, int(lifetime) - lived)

    def _time_to_live_of_runtime(self, job: TrainJob, workload: Workload | None) -> str | None:
        """The runtime's word as the job met it, or, when that revision is gone already, as it is now."""
        namespace, ref = job.metadata.namespace, job.spec.runtime_ref if job.spec else None
        revision = self._views.revisions.store.get(Key(namespace, revision_of(job, workload)))
        if revision is not None:
            return revision.metadata.annotation(TTL_ANNOTATION)
        runtime = self._views.runtime(ref, namespace) if ref is not None else None
        return runtime.metadata.annotation(TTL_ANNOTATION) if runtime is not None else None


async def delete_workload(client: Client, workload: Workload, *, as_seen: bool = False) -> None:
    """Deletes this very object, with what it owns. With `as_seen` only while it is as the store shows it: one that
    seems to run may have ended, and then its pods and their logs stay. `Conflict` says that the store is behind.
    """
    metadata = workload.metadata
    version = metadata.resource_version if as_seen else None
    options = DeleteOptions(uid=metadata.uid, resource_version=version, propagation="Background")
    try:
        await client.delete(workload.resource, metadata.name, metadata.namespace, options)
    except NotFound:
        pass
