"""Lets go of pods whose Job will not: it is gone, it has finished, or they no longer belong to it.

In: pods with the tracking finalizer and Jobs by watch. Out: the finalizer taken off, so that such pods can be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.resources import JOBS
from trainwright.client import Client
from trainwright.controlloop import Clock, Controller, Done, Key, Outcome, Source, Watches, key_of
from trainwright.embedded.workloads.job.accounting import is_tracked
from trainwright.embedded.workloads.job.controller import is_ours
from trainwright.embedded.workloads.job.decision import is_finished
from trainwright.embedded.workloads.job.finalizers import release
from trainwright.embedded.workloads.objects import ApiObject


class OrphanedPods:
    """Reads the shared sources. The pods' source needs the index `controller`."""

    def __init__(self, client: Client, jobs: Source[ApiObject], pods: Source[ApiObject], clock: Clock) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods
        self._clock = clock

    def controller(self) -> Controller:
        watches = [Watches(self._pods, _tracked), Watches(self._jobs, self._pods_of)]
        return Controller("job-orphans", self.reconcile, watches, workers=2, clock=self._clock)

    def _pods_of(self, job: ApiObject) -> Iterable[Key]:
        return [key_of(pod) for pod in self._pods.store.by("controller", job.metadata.uid) if is_tracked(pod)]

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._pods.store.get(key)
        if pod is not None and is_tracked(pod) and not self._has_job(pod):
            await release(self._client, pod)
        return Done()

    def _has_job(self, pod: ApiObject) -> bool:
        """Whether somebody else takes care of the finalizer."""
        owner = pod.metadata.controller
        if owner is None:
            return False
        if (owner.api_version, owner.kind) != (JOBS.api_version, JOBS.kind):
            return True
        job = self._jobs.store.get(Key(pod.metadata.namespace, owner.name))
        if job is None or job.metadata.uid != owner.uid:
            return False
        return not is_ours(job) or not is_finished(job)


def _tracked(pod: ApiObject) -> Iterable[Key]:
    return [key_of(pod)] if is_tracked(pod) else ()
