"""Carries out what `decision` decides for a Job.

In: Jobs and pods by watch. Out: pods created and deleted, Job status, finalizers of counted pods taken off, and the Job
itself deleted when its time to live is over. Every status is bound to the version it was computed from. Whenever this
process ends, what is stored tells the next one where to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from trainwright.api.resources import JOBS, PODS
from trainwright.api.times import seconds_of
from trainwright.client import AlreadyExists, ApiError, Client, Conflict, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, Outcome, Source, Watches, controlled_by
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.job import pods
from trainwright.embedded.workloads.job.accounting import is_active, is_tracked
from trainwright.embedded.workloads.job.decision import Decision, Event, decide, is_finished
from trainwright.embedded.workloads.job.expectations import Expectations
from trainwright.embedded.workloads.job.finalizers import release, track
from trainwright.embedded.workloads.job.population import PodToCreate
from trainwright.embedded.workloads.objects import ApiObject, changed_status
from trainwright.schema.jsonobject import Json

FINISHERS = ("Complete", "Failed")
MANAGER = "kubernetes.io/job-controller"


def is_ours(job: ApiObject) -> bool:
    return bool(job.spec.get("managedBy", MANAGER) == MANAGER)


class JobController:
    """Reads the shared sources. `controller()` returns the `Controller` for a `Manager`."""

    def __init__(self, client: Client, jobs: Source[ApiObject], owned: Source[ApiObject], clock: Clock) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = owned
        self._clock = clock
        self._events = EventRecorder(client, "job-controller", clock)
        self._expected: dict[str, Expectations] = {}
        self._uids: dict[Key, str] = {}

    def controller(self, workers: int = 4) -> Controller:
        watches = [Watches(self._jobs), Watches(self._pods, controlled_by("Job"))]
        return Controller("job", self.reconcile, watches, workers=workers, clock=self._clock)

    async def reconcile(self, key: Key) -> Outcome:
        job = self._jobs.store.get(key)
        if job is None or is_finished(job) or not is_ours(job):
            self._expected.pop(self._uids.pop(key, ""), None)
            return await self._expire(job) if job is not None and is_finished(job) else Done()
        uid = job.metadata.uid
        if self._uids.get(key) != uid:
            self._expected.pop(self._uids.get(key, ""), None)
            self._uids[key] = uid
        owned = self._pods.store.by("controller", uid)
        if uid not in self._expected:
            await self._track(job, owned)
        expected = self._expected.setdefault(uid, Expectations())
        if not expected.shows(job):
            return Done()  # the watch will show what was written
        now = self._clock.wall()
        decision = decide(job, expected.applied(owned, now), now, expected.record)
        await self._carry_out(job, decision, expected)
        return After(decision.after) if decision.after is not None else Done()

    async def _track(self, job: ApiObject, owned: Iterable[ApiObject]) -> None:
        """Puts the finalizer on running pods that an earlier version made without it."""
        if not job.is_being_deleted and not job.spec.get("suspend"):
            await asyncio.gather(*(track(self._client, pod) for pod in owned if is_active(pod) and not is_tracked(pod)))

    async def _carry_out(self, job: ApiObject, decision: Decision, expected: Expectations) -> None:
        errors = await self._create(job, decision)
        await asyncio.gather(*(self._delete(job, pod, decision, expected) for pod in decision.delete))
        status = decision.status
        if errors:
            left = status.get("active", 0) - len(errors)
            status = decision.status = {k: v for k, v in {**status, "active": left}.items() if k != "active" or left}
        job = await self._store(job, status, decision.events, expected)
        expected.record = decision.record
        released, failed = await self._release(decision.release, expected)
        decision.leaves_some |= bool(failed)
        status, events = decision.counted(released, self._clock.wall())
        await self._store(job, status, events, expected)
        for error in errors + failed:
            raise error

    async def _store(self, job: ApiObject, status: Json, events: Iterable[Event], expected: Expectations) -> ApiObject:
        """Writes the status if it has changed. Out: the Job as it is stored now."""
        patch = changed_status(job, status)
        if patch is None:
            return job
        key = Key(job.metadata.namespace, job.name)
        stored: ApiObject = await self._client.patch(
            JOBS, patch, name=key.name, namespace=key.namespace, subresource="status", decode=ApiObject
        )
        expected.version = stored.metadata.resource_version
        for type, reason, message in events:
            await self._events.record(JOBS, job.metadata, type, reason, message)
        return stored

    async def _create(self, job: ApiObject, decision: Decision) -> list[BaseException]:
        """Creates pods. Out: why some could not be."""
        created = await asyncio.gather(
            *(self._create_pod(job, wanted) for wanted in decision.create), return_exceptions=True
        )
        for result in created:
            if isinstance(result, ApiError):
                await self._events.record(JOBS, job.metadata, "Warning", "FailedCreate", f"Error creating: {result}")
        return [result for result in created if isinstance(result, BaseException)]

    async def _create_pod(self, job: ApiObject, wanted: PodToCreate) -> None:
        body = pods.build(job, wanted.index, wanted.name, wanted.failures)
        try:
            await self._client.create(PODS, body, job.metadata.namespace, decode=msgspec.Raw)
        except AlreadyExists:
            return  # created by an earlier reconcile; the store does not show it yet
        await self._events.record(JOBS, job.metadata, "Normal", "SuccessfulCreate", f"Created pod: {wanted.name}")

    async def _delete(self, job: ApiObject, pod: ApiObject, decision: Decision, expected: Expectations) -> None:
        if decision.uncounted and is_tracked(pod):
            await release(self._client, pod)
            expected.released.add(pod.metadata.uid)
        try:
            options = DeleteOptions(uid=pod.metadata.uid)
            await self._client.delete(PODS, pod.name, pod.metadata.namespace, options)
        except (NotFound, Conflict):
            return  # already deleted, or replaced by another pod of the same name
        finally:
            expected.deleted.add(pod.metadata.uid)
        await self._events.record(JOBS, job.metadata, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _release(self, doomed: list[ApiObject], expected: Expectations) -> tuple[list[str], list[BaseException]]:
        """Takes finalizers off. Out: the uids of pods that have none any more, and why others still do."""
        done = await asyncio.gather(*(release(self._client, pod) for pod in doomed), return_exceptions=True)
        released = [pod.metadata.uid for pod, error in zip(doomed, done, strict=True) if error is None]
        expected.released.update(released)
        return released, [error for error in done if error is not None]

    async def _expire(self, job: ApiObject) -> Outcome:
        """Deletes a finished Job when its time to live is over."""
        ttl = job.spec.get("ttlSecondsAfterFinished")
        finished = next((c for type in FINISHERS if (c := job.condition(type)) and c.get("status") == "True"), None)
        if ttl is None or finished is None or not finished.get("lastTransitionTime") or job.is_being_deleted:
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
