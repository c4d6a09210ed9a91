"""Carries out what `decision` decides for a JobSet.

In: JobSets, Jobs and services by watch. Out: the service, Jobs created, deleted, suspended and resumed, and the
status, last and once, bound to the version it was computed from. If another owner has a Job's name, an event says so
and the creation is retried.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from trainwright.api.resources import JOB_SETS, JOBS, SERVICES
from trainwright.client import AlreadyExists, ApiError, Client, Conflict, DeleteOptions, NotFound
from trainwright.controlloop import After, Clock, Controller, Done, Key, Outcome, Source, Watches, controlled_by
from trainwright.embedded.events import EventRecorder
from trainwright.embedded.workloads.jobset import children
from trainwright.embedded.workloads.jobset.decision import Decision, decide
from trainwright.embedded.workloads.jobset.defaults import defaulted
from trainwright.embedded.workloads.objects import ApiObject, changed_status
from trainwright.schema.jsonobject import Json

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
    ) -> None:
        self._client = client
        self._job_sets = job_sets
        self._jobs = jobs
        self._services = services
        self._clock = clock
        self._events = EventRecorder(client, "jobset-controller", clock)

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
        decision = decide(
            job_set,
            self._jobs.store.by("controller", job_set.metadata.uid),
            has_service=self._services.store.get(service) is not None,
            now=self._clock.wall(),
        )
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
                await self._events.record(JOB_SETS, job_set.metadata, type, reason, message)
        return After(decision.after) if decision.after is not None else Done()

    async def _act(self, job_set: ApiObject, decision: Decision) -> None:
        await asyncio.gather(*(self._delete(JOBS, job) for job in decision.delete))
        if decision.service is not None:
            try:
                await self._client.create(SERVICES, decision.service, job_set.metadata.namespace, decode=msgspec.Raw)
            except AlreadyExists:
                pass
        await asyncio.gather(*(self._create(job_set, job) for job in decision.create))
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

    async def _create(self, job_set: ApiObject, job: Json) -> None:
        name, namespace = job["metadata"]["name"], job_set.metadata.namespace
        try:
            await self._client.create(JOBS, job, namespace, decode=msgspec.Raw)
        except AlreadyExists as error:
            there = await self._client.get(JOBS, name, namespace, decode=ApiObject)
            owner = there.metadata.controller
            if owner is None or owner.uid != job_set.metadata.uid:
                await self._tell_creation_failed(job_set, f'job "{name}" creation failed with error: {error}')
                raise
        except ApiError as error:
            await self._tell_creation_failed(job_set, f'job "{name}" creation failed with error: {error}')
            raise

    async def _tell_creation_failed(self, job_set: ApiObject, message: str) -> None:
        await self._events.record(JOB_SETS, job_set.metadata, "Warning", "JobCreationFailed", message)

    async def _delete(self, resource: Any, thing: ApiObject) -> None:
        """Deletes in the foreground: a Job's name is free again only when its pods are deleted."""
        options = DeleteOptions(uid=thing.metadata.uid, propagation="Foreground")
        try:
            await self._client.delete(resource, thing.name, thing.metadata.namespace, options)
        except (NotFound, Conflict):
            pass
