"""Reads a cluster and finds out what this version would do to it, by the pure pipeline and dry runs.

Each unfinished TrainJob is built as the reconciler builds it: from the revision or snapshot of the runtime that it is
bound to, with its workload as it is stored. The API server says by a dry run what an apply of that would change, so
that defaults and the order of fields never count as a difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from trainwright.api.metadata import PartialObjectMetadata
from trainwright.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONTROLLER_REVISIONS,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    Resource,
)
from trainwright.api.runtime import TrainingRuntime
from trainwright.api.schema import schema_for
from trainwright.api.trainjob import TrainJob, trainjob_from
from trainwright.client import ApiError, Client, NotFound
from trainwright.client.errors import BadRequest, Forbidden, Invalid, not_served
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.runtimes.revisions import Revisions
from trainwright.operator.stores.views import RUNTIME_LABEL, Views
from trainwright.operator.upgrade import returning
from trainwright.operator.upgrade.findings import Effect, Finding, Report, name_of
from trainwright.pipeline import Framework, MaskedKeys, Observed, PipelineError, Workload, build, workload_of
from trainwright.pipeline.admission import admit_runtime
from trainwright.pipeline.ownership import BUILT_BY_US
from trainwright.schema.differences import differences
from trainwright.schema.jsonobject import Json

SHOWN_PATHS = 3


async def check(client: Client, framework: Framework) -> Report:
    """Raises `ApiError` where we may not look. Needs the right to read, and to patch what it tries by dry runs."""
    return await _Check(client, framework).report()


class _Check:
    def __init__(self, client: Client, framework: Framework) -> None:
        self._client = client
        self._framework = framework
        self._revisions = Revisions(client, Views())
        self._upgrade: list[Finding] = []
        self._back: list[Finding] = []

    async def report(self) -> Report:
        runtimes = 0
        for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES):
            for runtime in await self._list(resource):
                runtimes += 1
                self._upgrade += _of_runtime(resource, runtime)
        stored = await self._list(TRAIN_JOBS)
        unfinished = 0
        for value in stored:
            job = trainjob_from(value)
            if not job.is_ours:
                continue
            if not job.is_finished:
                unfinished += 1
                self._upgrade += _unknown_fields(TRAIN_JOBS, value)
            await self._look_at(job)
        await self._count_revisions()
        return Report(len(stored), unfinished, runtimes, self._upgrade, self._back)

    async def _list(self, resource: Resource) -> list[Json]:
        try:
            return (await self._client.list(resource, decode=Json)).items or []
        except NotFound:  # there are no CRDs
            return []

    async def _count_revisions(self) -> None:
        selector = f"{BUILT_BY_US},{RUNTIME_LABEL}"
        listed = await self._client.list(CONTROLLER_REVISIONS, decode=PartialObjectMetadata, label_selector=selector)
        if count := len(listed.items or ()):
            text = f"stay and are used by nobody: kubectl delete controllerrevisions -A -l {selector}"
            self._back.append(Finding(f"{count} ControllerRevisions", Effect.STAYS, text))

    async def _look_at(self, job: TrainJob) -> None:
        name = name_of("TrainJob", job.metadata.namespace, job.metadata.name)
        try:
            workload = await self._workload_of(job)
            if job.is_finished or (workload is not None and workload.status.is_finished):
                self._back += returning.of_ended(job, workload)
                return
            revision = await self._revisions.read(job, workload)
            self._back += returning.of_job(job, workload, revision.runtime)
            async for finding in self._of_job(name, job, workload, revision.name, revision.runtime):
                self._upgrade.append(finding)
        except PipelineError as error:
            self._upgrade.append(Finding(name, Effect.BREAKS, f"this version cannot build it: {error}"))

    async def _workload_of(self, job: TrainJob) -> Workload | None:
        found: list[tuple[Any, Any]] = []
        for named in self._framework.watches:
            if not named.watch.workload:
                continue
            metadata = job.metadata
            try:
                thing = await self._client.get(
                    named.watch.resource, metadata.name, metadata.namespace, decode=named.watch.decode
                )
            except NotFound:
                continue
            found.append((named, thing))
        workload = workload_of(job, found, self._framework)
        if workload is None:
            return None
        stored = await self._client.get(workload.resource, workload.metadata.name, workload.metadata.namespace)
        return msgspec.structs.replace(workload, stored=stored)

    async def _of_job(
        self, name: str, job: TrainJob, workload: Workload | None, revision: str, runtime: TrainingRuntime
    ) -> AsyncIterator[Finding]:
        """A job that runs is left alone, until it is suspended; so that is what is tried."""
        runs = workload is not None and not workload.status.is_suspended and not job.is_suspended
        tried = _suspended(job) if runs else job
        plan = build(
            tried, runtime, Observed(workload=workload, runtime_revision=revision), self._framework, MaskedKeys()
        )
        if workload is None or plan.workload is None:
            return
        when = "when it is next suspended" if runs else "while it is suspended"
        body = plan.workload[1]
        body["metadata"]["uid"] = workload.metadata.uid
        kind = workload.resource.kind
        try:
            after: Json = await self._client.apply(
                workload.resource,
                body,
                name=workload.metadata.name,
                namespace=workload.metadata.namespace,
                field_manager=FIELD_MANAGER,
                dry_run=True,
            )
        except (BadRequest, Forbidden, Invalid) as error:
            yield _refused(name, workload, when, error)
            return
        except NotFound as error:
            words = not_served(workload.resource.group_resource) if error.is_missing_type else str(error)
            yield Finding(name, Effect.BREAKS, f"{kind}: {words}")
            return
        before = (workload.stored or {}).get("spec") or {}
        changed = [path for path in differences(before, after.get("spec") or {}) if path != "suspend"]
        if changed:
            yield Finding(name, Effect.CHANGES, f"{when}, its {kind} changes: {_shown(changed)}")


def _suspended(job: TrainJob) -> TrainJob:
    assert job.spec is not None
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, suspend=True))


def _refused(name: str, workload: Workload, when: str, error: ApiError) -> Finding:
    kind, words = workload.resource.kind, str(error).partition(": Invalid value")[0]
    if workload.status.owns_claims:
        return Finding(
            name,
            Effect.BREAKS,
            f"{when}, its {kind} cannot be brought up to date ({words}) and is not replaced, since its"
            " PersistentVolumeClaims would go with it. Let it end before the upgrade",
        )
    text = f"{when}, its {kind} is replaced once no pod of it is left, since it cannot be changed ({words})"
    return Finding(name, Effect.CHANGES, text)


def _of_runtime(resource: Resource, runtime: Json) -> list[Finding]:
    metadata = runtime["metadata"]
    name = name_of(resource.kind, metadata.get("namespace") or "", metadata["name"])
    value = {"apiVersion": resource.api_version, "kind": resource.kind, **runtime}
    answer = admit_runtime(value, schema_for(resource.kind))
    found = [Finding(name, Effect.BREAKS, f"this version refuses it: {text}") for text in answer.messages]
    if answer.unknown:
        found.append(Finding(name, Effect.CHANGES, f"this version does not know, and drops: {_shown(answer.unknown)}"))
    return found


def _unknown_fields(resource: Resource, value: Json) -> list[Finding]:
    copy = msgspec.json.decode(msgspec.json.encode(value))
    unknown = schema_for(resource.kind).prune(copy)
    if not unknown:
        return []
    metadata = value["metadata"]
    name = name_of(resource.kind, metadata.get("namespace") or "", metadata["name"])
    return [Finding(name, Effect.CHANGES, f"this version does not know, and drops: {_shown(unknown)}")]


def _shown(paths: list[str]) -> str:
    more = len(paths) - SHOWN_PATHS
    return ", ".join(paths[:SHOWN_PATHS]) + (f" and {more} more" if more > 0 else "")
