"""The TrainJob reconciler.

In: a key. Out: the children that the pipeline wants exist and are this job's, and the status says what is so. Every
decision is read from the API server or from stores that follow it; what is remembered between two passes only saves
repeating a write that changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.trainjob import TrainJob
from trainwright.client import ApiError, Client, Conflict, Forbidden, NotFound
from trainwright.client.errors import BadRequest, Invalid, TooManyRequests, UnknownOutcome
from trainwright.controlloop import After, Done, Key, NotYet, Outcome
from trainwright.operator.applier import Applier, NotWritten, Replaced, WorkloadRefused
from trainwright.operator.converged import Converged
from trainwright.operator.ending import Ending, delete_workload
from trainwright.operator.events import Events
from trainwright.operator.kinds import Kinds, NotYetListed
from trainwright.operator.revisions import Revision, Revisions
from trainwright.operator.statuses import write_status
from trainwright.operator.views import Views
from trainwright.pipeline import (
    KeyMaterial,
    Observed,
    PipelineError,
    Plan,
    RuntimeNotSupported,
    Workload,
    WorkloadUnknown,
    build,
    status,
)

CONTROLLER = "trainjob_controller"
COMPONENT = "trainer-trainjob-controller"
CREATION_FAILED = "TrainJobResourcesCreationFailed"
EVENT_ERROR_LENGTH = 950
PLUGINS_CHANGED = "PluginsChanged"
PLUGINS_NOTE = "the plugins from outside have changed since this TrainJob last started; it is resumed with those of now"

Problem = PipelineError | str | None


class TrainJobReconciler:
    def __init__(
        self,
        client: Client,
        views: Views,
        kinds: Kinds,
        keys: KeyMaterial,
        *,
        ca_certificate: Callable[[], str] = lambda: "",
    ) -> None:
        self._client = client
        self._views = views
        self._kinds = kinds
        self._keys = keys
        self._ca_certificate = ca_certificate
        self._revisions = Revisions(client, views.revisions.store)
        self._applier = Applier(client, kinds.resource_of)
        self._events = Events(client, COMPONENT)
        self._ending = Ending(client, views, self._now)
        self._converged = Converged(kinds)

    async def reconcile(self, key: Key) -> Outcome:
        job = self._views.jobs.store.get(key)
        if job is None or job.is_being_deleted or not job.is_ours:
            self._converged.forget(key)
            return Done()
        try:
            workload = self._kinds.workload_of(job)
        except NotYetListed:
            return Done()  # the list wakes every job
        except WorkloadUnknown as error:
            if not job.is_finished:
                return await self._explain(job, None, error)
            outcome = await self._ending.clean_up(job, None)
            within = outcome.seconds if isinstance(outcome, After) else None
            raise NotYet(str(error), within=within) from error  # whether it runs on is not known
        if job.is_finished:
            self._converged.forget(key)
            await self._write_status(job, workload)
            return await self._ending.clean_up(job, workload)
        if workload is not None and self._is_settled(job, workload):
            return await self._write_status(job, workload)
        live = await self._read_live(job)
        if live is None:
            return Done()  # gone or replaced: the watch will tell
        return await self._go_on(live, workload)

    async def _go_on(self, job: TrainJob, workload: Workload | None) -> Outcome:
        """Bring the children to what they should be, and say how far that came."""
        try:
            revision, workload = await self._converge(job, workload)
        except NotYetListed:
            return Done()
        except RuntimeNotSupported as error:
            return await self._write_status(job, workload, problem=error)
        except (PipelineError, NotWritten) as error:
            return await self._explain(job, workload, error)
        return await self._write_status(job, workload, revision=revision)

    # Converging

    def _is_settled(self, job: TrainJob, workload: Workload) -> bool:
        """Nothing is to be written. A workload on its way out is built anew when it is gone; one that has ended is
        left as it is.
        """
        if workload.metadata.is_being_deleted or workload.status.is_finished:
            return True
        return self._converged.holds(job, workload, self._ca_certificate())

    async def _converge(self, job: TrainJob, workload: Workload | None) -> tuple[str, Workload | None]:
        """Resolve, build, write. Returns the name of the revision that the job runs from, and its workload."""
        revision = await self._bind(job, workload)
        observed = await self._observe(job, workload, revision)
        plan = build(job, revision.runtime, observed, self._kinds.framework, self._keys)  # pure
        self._kinds.check(plan)
        try:
            written = await self._applier.write(plan, job, observed.workload)
        except WorkloadRefused as error:
            if observed.workload is None or not await self._make_room(job, observed.workload, plan, error):
                raise
            return revision.name, workload  # it is built anew when it is gone
        if written.workload is not None and plan.workload is not None:
            workload = self._kinds.workload_from(job, plan.workload[0], written.workload)
        if plan.plugins_changed:
            await self._events.tell(TRAIN_JOBS, job.metadata, PLUGINS_CHANGED, PLUGINS_NOTE, type="Normal")
        self._converged.remember(job, workload, plan, written, observed.ca_certificate)
        return revision.name, workload

    async def _bind(self, job: TrainJob, workload: Workload | None) -> Revision:
        """The runtime as this job uses it."""
        if job.spec is None:
            raise RuntimeNotSupported("")
        try:
            return await self._revisions.ensure(job, workload)
        except ApiError as error:
            if isinstance(error, (Conflict, TooManyRequests, UnknownOutcome)):
                raise
            raise NotWritten("ControllerRevision for TrainJob", job.metadata.name, error) from error

    async def _observe(self, job: TrainJob, workload: Workload | None, revision: Revision) -> Observed:
        """What the decision depends on: the stores, and, where a workload is about to be changed, how it is stored."""
        if workload is not None and (workload.status.is_suspended or job.is_suspended):
            workload = await self._read_stored(workload)
        return Observed(
            workload=workload,
            children=self._kinds.children_of(job),
            taken=self._kinds.taken_from(job),
            ca_certificate=self._ca_certificate(),
            runtime_revision=revision.name,
        )

    async def _read_stored(self, workload: Workload) -> Workload:
        metadata = workload.metadata
        try:
            stored = await self._client.get(workload.resource, metadata.name, metadata.namespace)
        except NotFound as error:
            raise Replaced(str(error)) from error
        live = msgspec.convert(stored["metadata"], ObjectMeta)
        if live.uid != metadata.uid:
            raise Replaced(f'{workload.resource.kind} "{metadata.name}" was replaced')
        return msgspec.structs.replace(workload, metadata=live, stored=stored)

    async def _make_room(self, job: TrainJob, workload: Workload, plan: Plan, error: WorkloadRefused) -> bool:
        """The API server refuses to change the workload. Where it would accept it as a new object, and nobody loses
        anything by it, the old one is deleted.
        """
        if plan.workload is None or not isinstance(error.error, (BadRequest, Forbidden, Invalid)):
            return False
        if not await self._applier.could_be_created(plan.workload[1], job, workload.metadata):
            return False
        if workload.status.owns_claims:
            kind = workload.resource.kind
            raise PipelineError(
                f"{error}. A new {kind} would be accepted, but deleting this one would delete its"
                f" PersistentVolumeClaims: take the change back, or save their data and delete the {kind} yourself"
            )
        if not workload.status.is_at_rest:
            return False
        await delete_workload(self._client, workload)
        return True

    # Telling

    async def _write_status(
        self, job: TrainJob, workload: Workload | None, *, revision: str = "", problem: Problem = None
    ) -> Outcome:
        """Status last, once, and only when it says something new. At the deadline the workload goes with it."""
        seen = workload.status if workload is not None else None
        builder = workload.plugin if workload is not None else ""
        if builder not in self._kinds.framework.outside:
            builder = ""  # it cannot go away while we run
        update = status(job, seen, self._now(), runtime_revision=revision, workload_plugin=builder, problem=problem)
        await write_status(self._client, job, update.status)
        if update.delete_workload:
            return After(1.0)  # finished now: the pass that sees the stored status cleans up
        return Done() if update.look_again_after is None else After(update.look_again_after)

    async def _explain(self, job: TrainJob, workload: Workload | None, error: PipelineError | NotWritten) -> Outcome:
        """Says in an event and in the status why the job does not go on, and comes back with growing delay."""
        text = str(error)
        short = text[:EVENT_ERROR_LENGTH] + (" ..." if len(text) > EVENT_ERROR_LENGTH else "")
        note = f"TrainJob resources reconciliation failed: {short}"
        await self._events.tell(TRAIN_JOBS, job.metadata, CREATION_FAILED, note)
        outcome = await self._write_status(job, workload, problem=error if isinstance(error, PipelineError) else text)
        within = outcome.seconds if isinstance(outcome, After) else None  # a deadline runs on
        raise NotYet(text, within=within) from (error.error if isinstance(error, NotWritten) else error)

    # Looking

    async def _read_live(self, job: TrainJob) -> TrainJob | None:
        """The TrainJob as it is at this moment, if it is still the one we were called for and still ours to act for."""
        try:
            live = await self._client.get(TRAIN_JOBS, job.metadata.name, job.metadata.namespace, decode=TrainJob)
        except NotFound:
            return None
        same = live.metadata.uid == job.metadata.uid
        return live if same and live.is_ours and not live.is_being_deleted and not live.is_finished else None

    def _now(self) -> datetime:
        """By the API server's clock."""
        return datetime.fromtimestamp(self._client.server_time.now(), UTC)
