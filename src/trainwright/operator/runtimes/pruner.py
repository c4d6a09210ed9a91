"""Removes runtime revisions that no unfinished TrainJob can need any more.

A revision is kept while any unfinished TrainJob of its namespace names its runtime. The store may lag, so before a
delete the TrainJobs are listed live, and the delete carries uid and version. A revision must have been unused for a
while first: jobs that follow each other should share one.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.resources import CONTROLLER_REVISIONS, TRAIN_JOBS
from trainwright.api.trainjob import TrainJob
from trainwright.client import Client, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Done, Key, Outcome, key_of
from trainwright.operator.stores.views import (
    BY_RUNTIME_LABEL,
    REVISIONS_BY_LABEL,
    RUNTIME_LABEL,
    Views,
    runtime_labels_of,
)

CONTROLLER = "revision_controller"
UNUSED_SECONDS = 60.0


class RevisionPruner:
    def __init__(self, client: Client, views: Views, clock: Clock, *, unused_seconds: float = UNUSED_SECONDS) -> None:
        self._client = client
        self._views = views
        self._clock = clock
        self._unused_seconds = unused_seconds
        self._unused_since: dict[str, float] = {}  # by the revision's uid

    def revisions_of(self, job: TrainJob) -> Iterable[Key]:
        """The revisions that a change of `job` may set free."""
        for label in runtime_labels_of(job):
            for revision in self._views.revisions.store.by(REVISIONS_BY_LABEL, label):
                yield key_of(revision)

    async def reconcile(self, key: Key) -> Outcome:
        revision = self._views.revisions.store.get(key)
        if revision is None or revision.metadata.is_being_deleted:
            return Done()
        uid = revision.metadata.uid
        label = f"{key.namespace}/{revision.metadata.label(RUNTIME_LABEL)}"
        if self._views.jobs.store.has(BY_RUNTIME_LABEL, label):
            self._unused_since.pop(uid, None)
            return Done()
        since = self._unused_since.setdefault(uid, self._clock.now())
        remaining = since + self._unused_seconds - self._clock.now()
        if remaining > 0:
            return After(remaining)
        live = await self._client.list(TRAIN_JOBS, key.namespace, decode=TrainJob)
        if _is_needed(live.items or (), label):
            return Done()
        self._unused_since.pop(uid, None)
        options = DeleteOptions(uid=uid, resource_version=revision.metadata.resource_version)
        try:
            await self._client.delete(CONTROLLER_REVISIONS, key.name, key.namespace, options)
        except NotFound:
            pass
        return Done()


def _is_needed(jobs: Iterable[TrainJob], label: str) -> bool:
    return any(not job.is_finished and label in runtime_labels_of(job) for job in jobs)
