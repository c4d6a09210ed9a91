"""The TrainJob reconciler (D4 to D7, D12, D14, D15, D18, D20, D25, D28).

In: a key. Out: the children that the pipeline wants exist and are this job's, and the status says what is so. Every
decision is read from the API server; what is remembered between two passes only saves repeating a write that changed
nothing (I8).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from trainwright.api.resources import JOB_SETS, TRAIN_JOBS
from trainwright.api.times import moment_of
from trainwright.api.trainjob import COMPLETE, FAILED, TrainJob
from trainwright.client import ApiError, Client, Conflict, DeleteOptions, NotFound
from trainwright.client.errors import TooManyRequests, UnknownOutcome, not_served
from trainwright.controlloop import After, Done, Key, NotYet, Outcome, Source, key_of
from trainwright.operator.applier import Applier, NotWritten
from trainwright.operator.events import Events
from trainwright.operator.revisions import TTL_ANNOTATION, Revisions, revision_of
from trainwright.operator.statuses import write_status
from trainwright.operator.views import Views
from trainwright.pipeline import (
    Framework,
    KeyMaterial,
    NamedWatch,
    ObjectName,
    Observed,
    PipelineError,
    RuntimeNotSupported,
    Workload,
    build,
    status,
    workload_of,
)

CONTROLLER = "trainjob_controller"
COMPONENT = "trainer-trainjob-controller"
CREATION_FAILED = "TrainJobResourcesCreationFailed"
CLEAN_UP_SECONDS = 10.0
EVENT_ERROR_LENGTH = 950


class _Built(msgspec.Struct, frozen=True):
    """What was last written for a job: while none of it has changed, writing again would change nothing."""

    uid: str
    generation: int
    job_set_uid: str
    job_set_generation: int
    config_maps: dict[str, str]  # name → version
    ca_certificate: str


class TrainJobReconciler:
    def __init__(
        self,
        client: Client,
        views: Views,
        framework: Framework,
        keys: KeyMaterial,
        *,
        now: Callable[[], datetime] | None = None,
        ca_certificate: Callable[[], str] = lambda: "",
    ) -> None:
        self._client = client
        self._views = views
        self._framework = framework
        self._keys = keys
        self._revisions = Revisions(client, views.revisions.store)
        self._applier = Applier(client)
        self._events = Events(client, COMPONENT)
        self._now = now or (lambda: datetime.fromtimestamp(client.server_time.now(), UTC))
        self._ca_certificate = ca_certificate
        self._built: dict[Key, _Built] = {}

    async def reconcile(self, key: Key) -> Outcome:
        job = self._views.jobs.store.get(key)
        if job is None or job.is_being_deleted or not job.is_ours:
            self._built.pop(key, None)
            return Done()
        job_set = self._job_set_of(job)
        if job.is_finished:
            return await self._clean_up(job, job_set)
        if job_set is not None and (job_set.metadata.is_being_deleted or self._is_converged(job, job_set)):
            return await self._write_status(job, job_set)  # a JobSet on its way out is built anew when it is gone
        live = await self._read_live(job)
        if live is None:
            return Done()  # gone or replaced: the watch will tell
        try:
            revision, job_set = await self._converge(live)
        except RuntimeNotSupported as error:
            return await self._write_status(live, job_set, problem=error)
        except (PipelineError, NotWritten) as error:
            return await self._explain(live, job_set, error)
        return await self._write_status(live, job_set, revision=revision)

    # Converging

    async def _converge(self, job: TrainJob) -> tuple[str, Workload | None]:
        """Resolve, build, write. Returns the name of the revision that the job runs from, and its JobSet."""
        if job.spec is None:
            raise RuntimeNotSupported("")
        if not self._views.job_sets.is_served:
            raise PipelineError(not_served(JOB_SETS.group_resource))
        job_set = self._job_set_of(job)
        try:
            revision = await self._revisions.ensure(job, job_set)
        except ApiError as error:
            if isinstance(error, (Conflict, TooManyRequests, UnknownOutcome)):
                raise
            raise NotWritten("ControllerRevision for TrainJob", job.metadata.name, error) from error
        children, taken = self._names_of(job)
        observed = Observed(
            workload=job_set,
            children=children,
            taken=taken,
            ca_certificate=self._ca_certificate(),
            runtime_revision=revision.name,
        )
        plan = build(job, revision.runtime, observed, self._framework, self._keys)  # pure
        try:
            applied = await self._applier.apply(plan.objects, job, has_job_set=job_set is not None)
        except NotWritten as error:
            if job_set is None or not error.is_about_immutability or not job_set.status.is_at_rest:
                raise
            await self._delete(job_set)  # nothing of it runs: a JobSet as it is wanted now takes its place
            return revision.name, job_set
        if applied.job_set is not None:
            job_set = workload_of(job, [(self._named(), applied.job_set)], self._framework)
        self._remember(job, job_set, applied.config_maps, observed.ca_certificate)
        return revision.name, job_set

    def _is_converged(self, job: TrainJob, job_set: Workload) -> bool:
        """What we last built is there as we left it; while the JobSet runs, that it is there is enough."""
        built = self._built.get(key_of(job))
        if built is None or built.uid != job.metadata.uid or built.ca_certificate != self._ca_certificate():
            return False
        if any(self._version_of_config_map(job, name) != version for name, version in built.config_maps.items()):
            return False
        if not job.is_suspended and not job_set.status.is_suspended:
            return True
        return (built.generation, built.job_set_uid, built.job_set_generation) == (
            job.metadata.generation,
            job_set.metadata.uid,
            job_set.metadata.generation,
        )

    def _remember(
        self, job: TrainJob, job_set: Workload | None, config_maps: dict[str, str], ca_certificate: str
    ) -> None:
        if job_set is not None:
            ours, theirs = job.metadata, job_set.metadata
            self._built[key_of(job)] = _Built(
                ours.uid, ours.generation, theirs.uid, theirs.generation, config_maps, ca_certificate
            )

    # Ending

    async def _clean_up(self, job: TrainJob, job_set: Workload | None) -> Outcome:
        """Finished is a latch (D7). Repeats until nothing of the job runs (D6); then its time to live counts (D28)."""
        self._built.pop(key_of(job), None)
        outcome = await self._write_status(job, job_set)
        if job_set is not None and not job_set.status.is_finished:
            if not job_set.metadata.is_being_deleted:
                await self._delete(job_set)
            return After(CLEAN_UP_SECONDS)
        remaining = self._time_to_live(job, job_set)
        if remaining is None:
            return outcome
        if remaining > 0:
            return After(remaining)
        options = DeleteOptions(
            uid=job.metadata.uid, resource_version=job.metadata.resource_version, propagation="Background"
        )
        try:
            await self._client.delete(TRAIN_JOBS, job.metadata.name, job.metadata.namespace, options)
        except NotFound:
            pass
        return Done()

    async def _delete(self, job_set: Workload) -> None:
        metadata = job_set.metadata
        options = DeleteOptions(uid=metadata.uid, propagation="Background")
        try:
            await self._client.delete(JOB_SETS, metadata.name, metadata.namespace, options)
        except NotFound:
            pass

    def _time_to_live(self, job: TrainJob, job_set: Workload | None) -> float | None:
        """Seconds until the finished job is to be deleted; None when it is to stay."""
        text = job.metadata.annotation(TTL_ANNOTATION) or self._time_to_live_of_runtime(job, job_set)
        if text is None or not text.isdecimal():
            return None
        end = next((c for kind in (COMPLETE, FAILED) if (c := job.condition(kind)) and c.is_true), None)
        if end is None:
            return None
        lived = (self._now() - moment_of(end.last_transition_time)).total_seconds()
        return max(0.0, int(text) - lived)

    def _time_to_live_of_runtime(self, job: TrainJob, job_set: Workload | None) -> str | None:
        """The runtime's word as the job met it, or, when that revision is gone already, as it is now."""
        namespace, ref = job.metadata.namespace, job.spec.runtime_ref if job.spec else None
        found = self._views.revisions.store.get(Key(namespace, revision_of(job, job_set)))
        if found is None and ref is not None and ref.kind == "TrainingRuntime":
            found = self._views.runtimes.store.get(Key(namespace, ref.name))
        elif found is None and ref is not None:
            found = self._views.cluster_runtimes.store.get(Key("", ref.name))
        return found.metadata.annotation(TTL_ANNOTATION) if found is not None else None

    # Telling

    async def _write_status(
        self, job: TrainJob, job_set: Workload | None, *, revision: str = "", problem: PipelineError | str | None = None
    ) -> Outcome:
        """Status last, once, and only when it says something new (I6). At the deadline the JobSet goes with it."""
        update = status(
            job, job_set.status if job_set else None, self._now(), runtime_revision=revision, problem=problem
        )
        await write_status(self._client, job, update.status)
        if update.delete_workload and job_set is not None:
            return After(1.0)  # finished now: the pass that sees the stored status cleans up
        return Done() if update.look_again_after is None else After(update.look_again_after)

    async def _explain(self, job: TrainJob, job_set: Workload | None, error: PipelineError | NotWritten) -> Outcome:
        """Says in an event and in the status why the job does not go on, and comes back with growing delay (D20)."""
        text = str(error)
        short = text[:EVENT_ERROR_LENGTH] + (" ..." if len(text) > EVENT_ERROR_LENGTH else "")
        note = f"TrainJob resources reconciliation failed: {short}"
        await self._events.tell(TRAIN_JOBS, job.metadata, CREATION_FAILED, note)
        outcome = await self._write_status(job, job_set, problem=text)
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

    def _named(self) -> NamedWatch:
        return next(named for named in self._framework.watches if named.watch.resource is JOB_SETS)

    def _job_set_of(self, job: TrainJob) -> Workload | None:
        found = self._views.job_sets.store.get(key_of(job))
        return workload_of(job, [(self._named(), found)], self._framework) if found is not None else None

    def _names_of(self, job: TrainJob) -> tuple[frozenset[ObjectName], frozenset[ObjectName]]:
        """Of the objects with the job's name, those that are this job's and those that are somebody else's."""
        ours: set[ObjectName] = set()
        theirs: set[ObjectName] = set()
        sources: tuple[Source[Any], ...] = (
            self._views.job_sets,
            self._views.pod_groups,
            self._views.volcano_pod_groups,
        )
        for source in sources:
            found = source.store.get(key_of(job))
            if found is not None:
                name = ObjectName(source.resource.api_version, source.resource.kind, job.metadata.name)
                (ours if found.metadata.is_controlled_by(job.metadata.uid) else theirs).add(name)
        return frozenset(ours), frozenset(theirs)

    def _version_of_config_map(self, job: TrainJob, name: str) -> str | None:
        found = self._views.config_maps.store.get(Key(job.metadata.namespace, name))
        return found.metadata.resource_version if found is not None else None
