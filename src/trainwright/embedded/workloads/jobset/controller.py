"""Carries out what `decision` decides for a JobSet.

In: JobSets, Jobs and services by watch. Out: the service, volume claims, Jobs created, deleted, suspended and
resumed, and the status, last and once, bound to the version it was computed from. If another owner has a Job's name, an
event says so and the creation is retried.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from trainwright.api.resources import JOB_SETS, JOBS, PERSISTENT_VOLUME_CLAIMS, SERVICES, Resource
from trainwright.client import AlreadyExists, ApiError, Client, Conflict, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, NotYet, Outcome, Source, Watches, controlled_by
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.features import DEFAULTS, Features
from trainwright.embedded.workloads.jobset import children
from trainwright.embedded.workloads.jobset.decision import Decision, decide
from trainwright.embedded.workloads.jobset.defaults import defaulted
from trainwright.embedded.workloads.jobset.failure_policy import GateOff
from trainwright.embedded.workloads.jobset.job_restarts import BadLabel
from trainwright.embedded.workloads.objects import ApiObject, changed_status
from trainwright.schema.jsonobject import Json

ACTION = "Reconciling"
MANAGER = "jobset.sigs.k8s.io/jobset-controller"


class JobSetController:
    """Reads the shared sources. `controller()` returns the `Controller` for a `Manager`."""

    def __init__(
        self,
        client: Client,
        job_sets: Source[ApiObject],
        jobs: Source[ApiObject],
        services: Source[ApiObject],
        clock: Clock,
        gates: Features = DEFAULTS,
    ) -> None:
        self._client = client
        self._job_sets = job_sets
        self._jobs = jobs
        self._services = services
        self._clock = clock
        self._gates = gates
        self._events = EventRecorder(client, "jobset", clock)

    def controller(self, workers: int = 4) -> Controller:
        watches = [
            Watches(self._job_sets),
            Watches(self._jobs, controlled_by("JobSet")),
            Watches(self._services, controlled_by("JobSet")),
        ]
        return Controller("jobset", self.reconcile, watches, workers=workers, clock=self._clock)

    async def reconcile(self, key: Key) -> Outcome:
        job_set = self._job_sets.store.get(key)
        if job_set is None or job_set.is_being_deleted or job_set.spec.get("managedBy", MANAGER) != MANAGER:
            return Done()
        service = Key(key.namespace, children.subdomain(job_set, defaulted(job_set.spec)))
        try:
            decision = decide(
                job_set,
                self._jobs.store.by("controller", job_set.metadata.uid),
                has_service=self._services.store.get(service) is not None,
                now=self._clock.wall(),
                gates=self._gates,
            )
        except (BadLabel, GateOff) as error:
            raise NotYet(str(error)) from error
        if decision.delete_self:
            await self._delete(JOB_SETS, job_set)
            return Done()
        await self._act(job_set, decision)
        patch = changed_status(job_set, decision.status)
        if patch is not None:
            await self._client.patch(
                JOB_SETS, patch, name=key.name, namespace=key.namespace, subresource="status", decode=msgspec.Raw
            )
            for type, reason, message in decision.events:
                await self._events.record(JOB_SETS, job_set.metadata, type, reason, message, action=ACTION)
        return After(decision.after) if decision.after is not None else Done()

    async def _act(self, job_set: ApiObject, decision: Decision) -> None:
        await asyncio.gather(*(self._delete(JOBS, job) for job in decision.delete))
        if decision.service is not None:
            await self._create_beside(job_set, SERVICES, decision.service, "HeadlessServiceCreationFailed")
        for claim in decision.claims:
            await self._create_beside(job_set, PERSISTENT_VOLUME_CLAIMS, claim, "PVCCreationFailed")
        for job, body in decision.scale:
            await self._client.patch(JOBS, body, name=job.name, namespace=job.metadata.namespace, decode=msgspec.Raw)
        await self._create_all(job_set, decision.create)
        for job in decision.suspend:
            body = {"metadata": {"resourceVersion": job.metadata.resource_version}, "spec": {"suspend": True}}
            await self._client.patch(JOBS, body, name=job.name, namespace=job.metadata.namespace, decode=msgspec.Raw)
        for job, body in decision.resume:
            if job.status.get("startTime") is not None:
                # A Job's template may change only while it has not started.
                unstarted = {"status": {"startTime": None}}
                name, namespace = job.name, job.metadata.namespace
                await self._client.patch(JOBS, unstarted, name=name, namespace=namespace, subresource="status")
                body["metadata"] = {"uid": job.metadata.uid}
            await self._client.patch(JOBS, body, name=job.name, namespace=job.metadata.namespace, decode=msgspec.Raw)

    async def _create_beside(self, job_set: ApiObject, resource: Resource, body: Json, failure: str) -> None:
        try:
            await self._client.create(resource, body, job_set.metadata.namespace, decode=msgspec.Raw)
        except AlreadyExists:
            pass
        except ApiError as error:
            await self._events.record(JOB_SETS, job_set.metadata, "Warning", failure, str(error), action=ACTION)
            raise

    async def _create_all(self, job_set: ApiObject, jobs: list[Json]) -> None:
        """Creates Jobs side by side. What failed is one event and one error, after all have been tried."""
        errors = [error for error in await asyncio.gather(*(self._create(job_set, job) for job in jobs)) if error]
        if errors:
            message = "\n".join(message for message, _ in errors)
            reason = "JobCreationFailed"
            await self._events.record(JOB_SETS, job_set.metadata, "Warning", reason, message, action=ACTION)
            raise errors[0][1]

    async def _create(self, job_set: ApiObject, job: Json) -> tuple[str, ApiError] | None:
        name, namespace = job["metadata"]["name"], job_set.metadata.namespace
        try:
            await self._client.create(JOBS, job, namespace, decode=msgspec.Raw)
        except ApiError as error:
            if isinstance(error, AlreadyExists):
                there = await self._client.get(JOBS, name, namespace, decode=ApiObject)
                if there.metadata.is_controlled_by(job_set.metadata.uid):
                    return None  # created by an earlier reconcile; the store does not show it yet
            return f'job "{name}" creation failed with error: {error}', error
        return None

    async def _delete(self, resource: Any, thing: ApiObject) -> None:
        """Deletes in the foreground: a Job's name is free again only when its pods are deleted."""
        options = DeleteOptions(uid=thing.metadata.uid, propagation="Foreground")
        try:
            await self._client.delete(resource, thing.name, thing.metadata.namespace, options)
        except (NotFound, Conflict):
            pass
