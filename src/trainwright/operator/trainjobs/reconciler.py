"""The TrainJob reconciler.

In: a key. Out: the children that the pipeline wants exist and are this job's, and the status says what is so. Every
decision is read from the API server or from stores that follow it; what is remembered between two passes only saves
repeating a write that changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import seconds_of
from trainwright.api.trainjob import TrainJob
from trainwright.client import ApiError, Client, Conflict, Forbidden, NotFound
from trainwright.client.errors import BadRequest, Invalid, TooManyRequests, UnknownOutcome
from trainwright.clock import Clock
from trainwright.controlloop import After, Delta, Done, Key, NotYet, Outcome, OwnWrites, key_of
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.runtimes.revisions import Revision, Revisions, revision_of
from trainwright.operator.stores.kinds import Kinds, NotYetListed
from trainwright.operator.stores.views import Views, is_whole
from trainwright.operator.trainjobs.applier import Applier, NotWritten, Replaced, WorkloadRefused
from trainwright.operator.trainjobs.converged import Converged
from trainwright.operator.trainjobs.ending import Ending, delete_workload
from trainwright.operator.trainjobs.events import Events
from trainwright.operator.trainjobs.explaining import NOTHING, Explaining
from trainwright.operator.trainjobs.scaling import Scaling
from trainwright.operator.trainjobs.statuses import Statuses
from trainwright.pipeline import (
    KeyMaterial,
    Observed,
    PipelineError,
    Plan,
    RuntimeNotSupported,
    Workload,
    WorkloadLost,
    WorkloadUnknown,
    build,
    status,
)
from trainwright.schema.jsonobject import Json

CONTROLLER = "trainjob_controller"
COMPONENT = "trainer-trainjob-controller"
CREATION_FAILED = "TrainJobResourcesCreationFailed"
EVENT_ERROR_LENGTH = 950
LEAVING_SECONDS = 2.0
ELASTIC_SECONDS = 0.5
PLUGINS_CHANGED = "PluginsChanged"
PLUGINS_NOTE = "the plugins from outside have changed since this TrainJob last started; it is resumed with those of now"

WORKLOAD_LOST = "WorkloadLost"

Problem = PipelineError | str | None


class Rebuilding(Exception):
    """The workload was deleted, so that another one can take its place."""


class TrainJobReconciler:
    def __init__(
        self,
        client: Client,
        views: Views,
        kinds: Kinds,
        keys: KeyMaterial,
        *,
        clock: Clock,
        ca_certificate: Callable[[], str] = lambda: "",
        local_node: bool = False,
    ) -> None:
        self._client = client
        self._views = views
        self._kinds = kinds
        self._keys = keys
        self._ca_certificate = ca_certificate
        self._local_node = local_node
        self._replaced: dict[Key, str] = {}  # the uid of a workload that we deleted to build another one
        self._crowded: dict[Key, float | None] = {}  # names that a predecessor held, and since when they are free
        self._clock = clock
        self._jobs = OwnWrites(views.jobs)
        self._statuses = Statuses(client, self._jobs, clock)
        self._revisions = Revisions(client, views)
        self._applier = Applier(client, kinds.resource_of)
        self._events = Events(client, COMPONENT)
        self._explaining = Explaining(client, self._events, clock, kinds)
        self._scaling = Scaling(client, kinds, self._events)
        self._ending = Ending(client, views, self._now)
        self._converged = Converged(kinds)
        self._made = clock.now()

    async def reconcile(self, key: Key) -> Outcome:
        job = self._jobs.get(key)
        if job is None or job.is_being_deleted or not job.is_ours:
            self._forget(key, job)
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
            self._forget(key, job)
            if workload is None or workload.status.is_finished:  # one that seems to run may be an old sight of it
                await self._write_status(job, workload, at_once=True)
            return await self._ending.clean_up(job, workload)
        if workload is not None and self._is_settled(job, workload):
            return await self._write_status(job, workload, problem=await self._scaling.follow(job, workload))
        if workload is None and (not is_whole(job) or self._kinds.saw_go(job)):
            return await self._build_again(job)
        if workload is None and self._was_there_before(job):
            return await self._build_found(job)
        return await self._build(job, workload)

    def is_own_write(self, delta: Delta[TrainJob]) -> bool:
        """Whether a change that the watch shows is a status that we wrote, and nothing follows from it. The end of a
        job is looked at again: what is left of it is cleaned up when its end is stored.
        """
        return delta.new is not None and not delta.new.is_finished and self._jobs.is_shown_by(delta)

    def _forget(self, key: Key, job: TrainJob | None) -> None:
        self._converged.forget(key)
        self._statuses.forget(key)
        self._explaining.forget(key)
        self._replaced.pop(key, None)
        self._crowded.pop(key, None)
        if job is not None:
            self._kinds.forget(job)

    async def _build_again(self, job: TrainJob) -> Outcome:
        """The workload existed and is gone. A job trains once, so that it is built again only when we saw that it had
        not ended.
        """
        try:
            last = self._kinds.last_seen(job)
        except WorkloadUnknown as error:
            return await self._explain(job, None, error)
        if last is None:
            if await self._is_there(job):
                return After(LEAVING_SECONDS)  # the watch is behind, and will show it
            lost = WorkloadLost(job.metadata.name)
            await self._events.tell(TRAIN_JOBS, job.metadata, WORKLOAD_LOST, str(lost))
            return await self._write_status(job, None, problem=lost)
        if last.status.is_finished:
            return await self._write_status(job, last)
        return await self._build(job, None)

    def _was_there_before(self, job: TrainJob) -> bool:
        """Whether the job is older than this operator, so that another one may have acted for it."""
        created = job.metadata.creation_timestamp
        began = self._client.server_time.now() - (self._clock.now() - self._made)
        return created is not None and seconds_of(created) <= began

    async def _build_found(self, job: TrainJob) -> Outcome:
        """A job that we found, and of no workload. A first list may be an old sight of both: a job that has ended, or
        has a workload by now, must not train again.
        """
        live = await self._read_live(job)
        if live is None:
            return Done()  # ended, gone or replaced: the watch will tell
        if not is_whole(live):
            return After(LEAVING_SECONDS)  # the watch is behind, and will show its workload, or that it has gone
        return await self._go_on(live, None)

    async def _build(self, job: TrainJob, workload: Workload | None) -> Outcome:
        whole = job if is_whole(job) else await self._read_live(job)
        if whole is None:
            return Done()  # gone or replaced: the watch will tell
        return await self._go_on(whole, workload)

    def _seconds_to_room(self, job: TrainJob) -> float:
        """How long a first build waits for what a predecessor of the same name left behind.

        Its workload is gone, its Jobs and pods may still be on their way out: controllers that know them by name would
        take the new ones for the old.
        """
        key = key_of(job)
        if self._kinds.taken_from(job):
            self._crowded[key] = None
        elif key in self._crowded:
            free_since = self._crowded[key]
            if free_since is None:
                free_since = self._crowded[key] = self._clock.now()
            remaining = free_since + LEAVING_SECONDS - self._clock.now()
            if remaining > 0:
                return remaining
            del self._crowded[key]
        return 0.0

    async def _go_on(self, job: TrainJob, workload: Workload | None) -> Outcome:
        """Bring the children to what they should be, and say how far that came."""
        if workload is None and (seconds := self._seconds_to_room(job)) > 0:
            return After(seconds)
        if workload is None:
            self._statuses.job_starts()
        try:
            revision, workload = await self._converge(job, workload)
        except (NotYetListed, Rebuilding):
            return Done()  # a list, or the old workload's deletion, wakes the job
        except RuntimeNotSupported as error:
            return await self._write_status(job, workload, problem=error)
        except (PipelineError, NotWritten) as error:
            return await self._explain(job, workload, error)
        problem = await self._scaling.follow(job, workload) if workload is not None else None
        return await self._write_status(job, workload, revision=revision, problem=problem)

    # Converging

    def _is_settled(self, job: TrainJob, workload: Workload) -> bool:
        """Nothing is to be written. A workload on its way out is built anew when it is gone; one that has ended is
        left as it is.
        """
        if self._is_going(job, workload) or workload.status.is_finished:
            return True
        if workload.status.mend is not None:
            return False
        return self._converged.holds(job, workload, self._ca_certificate())

    def _is_going(self, job: TrainJob, workload: Workload) -> bool:
        """It is being deleted, by whomever; the store may not show yet that we did it."""
        return workload.metadata.is_being_deleted or self._replaced.get(key_of(job)) == workload.metadata.uid

    async def _converge(self, job: TrainJob, workload: Workload | None) -> tuple[str, Workload | None]:
        """Resolve, build, write. Returns the name of the revision that the job runs from, and its workload."""
        if workload is not None and workload.status.mend is not None:
            workload = await self._mend(job, workload, workload.status.mend)
        revision = await self._bind(job, workload)
        observed = await self._observe(job, workload, revision)
        plan = build(job, revision.runtime, observed, self._kinds.framework, self._keys)  # pure
        self._kinds.check(plan)
        known = self._kinds.known_of(job, plan)
        try:
            written = await self._applier.write(plan, job, observed.workload, known)
        except WorkloadRefused as error:
            if observed.workload is None:
                raise
            if await self._halt(job, observed.workload, error):
                return revision.name, workload
            if not await self._make_room(job, observed.workload, plan, error):
                raise
            raise Rebuilding from error
        if written.workload is not None and plan.workload is not None:
            workload = self._kinds.remember(job, plan.workload[0], written.workload)
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
            local_node=self._local_node,
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

    async def _halt(self, job: TrainJob, workload: Workload, error: WorkloadRefused) -> bool:
        """The API server refuses to change a workload that is to be suspended: Kubeflow Trainer, or another version of
        ours, built it otherwise. It is suspended as it is; when its pods have gone, `_make_room` decides.
        """
        if not isinstance(error.error, (BadRequest, Forbidden, Invalid)):
            return False  # it passes
        if not job.is_suspended or workload.status.is_suspended or workload.status.halt is None:
            return False
        await self._patch(workload, workload.status.halt)
        return True

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
        await self._statuses.release_workload(job)  # or its absence would look like a loss
        await delete_workload(self._client, workload)
        self._replaced[key_of(job)] = workload.metadata.uid
        return True

    async def _mend(self, job: TrainJob, workload: Workload, patch: Json) -> Workload | None:
        """Take over from a workload what the operator sees to, such as its time to live."""
        return self._kinds.remember(job, workload.plugin, await self._patch(workload, patch))

    async def _patch(self, workload: Workload, patch: Json) -> bytes:
        metadata = workload.metadata
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), "uid": metadata.uid}}
        try:
            answer: bytes = await self._client.patch(
                workload.resource,
                body,
                name=metadata.name,
                namespace=metadata.namespace,
                field_manager=FIELD_MANAGER,
                decode=bytes,
            )
        except Conflict:
            raise
        except ApiError as error:
            raise NotWritten(workload.resource.kind, metadata.name, error) from error
        return answer

    # Telling

    async def _write_status(
        self,
        job: TrainJob,
        workload: Workload | None,
        *,
        revision: str = "",
        problem: Problem = None,
        at_once: bool = False,
    ) -> Outcome:
        """Status last, and only when it says something new. At the deadline the workload goes with it."""
        seen = workload.status if workload is not None else None
        builder = workload.plugin if workload is not None else ""
        uid = workload.metadata.uid if workload is not None and not self._is_going(job, workload) else ""
        if builder not in self._kinds.framework.outside:
            builder = ""  # it cannot go away while we run
        explained = NOTHING
        if workload is not None and problem is None and uid:
            explained = await self._explaining.explain(job, workload)
        update = status(
            job,
            seen,
            self._now(),
            runtime_revision=revision or revision_of(job, workload),
            workload_uid=uid,
            workload_plugin=builder,
            problem=problem,
            explanation=explained.text,
            elastic=self._scaling.count(job, workload) if workload is not None else None,
        )
        remaining = await self._statuses.write(job, update.status, at_once=at_once or problem is not None)
        if remaining is None:
            await self._scaling.tell(job, update.status.elastic)
        if update.delete_workload:
            return After(1.0)  # finished now: the pass that sees the stored status cleans up
        is_news = update.status.elastic is not None and (job.status is None or job.status.elastic is None)
        soon = ELASTIC_SECONDS if is_news else None  # only then may its nodes change; our own write does not wake us
        looks = (remaining, update.look_again_after, explained.look_again_after, soon)
        waits = [seconds for seconds in looks if seconds is not None]
        return After(min(waits)) if waits else Done()

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

    async def _is_there(self, job: TrainJob) -> bool:
        """Whether a workload of this job exists at this moment, whatever the stores say."""
        for resource in self._kinds.workload_resources():
            try:
                found = await self._client.get(
                    resource,
                    job.metadata.name,
                    job.metadata.namespace,
                    decode=PartialObjectMetadata,
                    metadata_only=True,
                )
            except NotFound:
                continue
            if found.metadata.is_controlled_by(job.metadata.uid):
                return True
        return False

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
