"""Carries out what `decision` decides for a Job.

In: Jobs and pods by watch. Out: pods created and deleted, Job status, and the Job itself deleted when its time to live
is over. Order: pods first, status last and once, bound to the version it was computed from.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from trainwright.api.resources import JOBS, PODS
from trainwright.api.times import seconds_of
from trainwright.client import AlreadyExists, ApiError, Client, Conflict, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, Outcome, Source, Watches, controlled_by
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.job import pods
from trainwright.embedded.workloads.job.decision import Decision, PodToCreate, decide, is_finished
from trainwright.embedded.workloads.objects import ApiObject, changed_status

log = logging.getLogger(__name__)

FINISHERS = ("Complete", "Failed")
MANAGER = "kubernetes.io/job-controller"


class JobController:
    """Reads the shared sources. `controller()` returns the `Controller` for a `Manager`."""

    def __init__(self, client: Client, jobs: Source[ApiObject], owned: Source[ApiObject], clock: Clock) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = owned
        self._clock = clock
        self._events = EventRecorder(client, "job-controller", clock)

    def controller(self, workers: int = 4) -> Controller:
        watches = [Watches(self._jobs), Watches(self._pods, controlled_by("Job"))]
        return Controller("job", self.reconcile, watches, workers=workers, clock=self._clock)

    async def reconcile(self, key: Key) -> Outcome:
        job = self._jobs.store.get(key)
        if job is None or job.is_being_deleted or job.spec.get("managedBy", MANAGER) != MANAGER:
            return Done()
        if is_finished(job):
            return await self._expire(job)
        decision = decide(job, self._pods.store.by("controller", job.metadata.uid), self._clock.wall())
        await self._create(job, decision)
        await asyncio.gather(*(self._delete(job, pod) for pod in decision.delete))
        patch = changed_status(job, decision.status)
        if patch is not None:
            await self._client.patch(
                JOBS, patch, name=key.name, namespace=key.namespace, subresource="status", decode=msgspec.Raw
            )
            for type, reason, message in decision.events:
                await self._events.record(JOBS, job.metadata, type, reason, message)
        return After(decision.after) if decision.after is not None else Done()

    async def _create(self, job: ApiObject, decision: Decision) -> None:
        if not decision.create:
            return
        created = await asyncio.gather(
            *(self._create_pod(job, wanted) for wanted in decision.create), return_exceptions=True
        )
        for result in created:
            if isinstance(result, ApiError):
                await self._events.record(JOBS, job.metadata, "Warning", "FailedCreate", f"Error creating: {result}")
            if isinstance(result, BaseException):
                raise result

    async def _create_pod(self, job: ApiObject, wanted: PodToCreate) -> None:
        body = pods.build(job, wanted.index, wanted.name, wanted.failures)
        try:
            await self._client.create(PODS, body, job.metadata.namespace, decode=msgspec.Raw)
        except AlreadyExists:
            return  # created by an earlier reconcile; the store does not show it yet
        await self._events.record(JOBS, job.metadata, "Normal", "SuccessfulCreate", f"Created pod: {wanted.name}")

    async def _delete(self, job: ApiObject, pod: ApiObject) -> None:
        try:
            options = DeleteOptions(uid=pod.metadata.uid)
            await self._client.delete(PODS, pod.name, pod.metadata.namespace, options)
        except (NotFound, Conflict):
            return  # already deleted, or replaced by another pod of the same name
        await self._events.record(JOBS, job.metadata, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _expire(self, job: ApiObject) -> Outcome:
        """Deletes a finished Job when its time to live is over."""
        ttl = job.spec.get("ttlSecondsAfterFinished")
        finished = next((c for type in FINISHERS if (c := job.condition(type)) and c.get("status") == "True"), None)
        if ttl is None or finished is None or not finished.get("lastTransitionTime"):
            return Done()
        left = seconds_of(finished["lastTransitionTime"]) + ttl - self._clock.wall()
        if left > 0:
            return After(left)
        options = DeleteOptions(uid=job.metadata.uid, propagation="Foreground")
        try:
            await self._client.delete(JOBS, job.name, job.metadata.namespace, options)
        except NotFound:
            pass
        return Done()
