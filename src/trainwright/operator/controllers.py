"""The operator's controllers: what each is woken by, and how many workers it has.

In: a client, the settings and the kinds that plugins name. Out: `all`, for a `Manager` to run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from trainwright.api.configuration import TRAIN_JOB
from trainwright.client import Client
from trainwright.clock import Clock
from trainwright.controlloop import (
    Controller,
    Key,
    Metrics,
    Reconcile,
    Source,
    Watches,
    controlled_by,
    itself,
    key_of,
)
from trainwright.controlloop.source import KeysOf
from trainwright.operator.runtimes import pruner
from trainwright.operator.runtimes.guard import RuntimeGuard
from trainwright.operator.runtimes.pruner import RevisionPruner
from trainwright.operator.settings import Settings
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.stores.views import BY_RUNTIME, StoredRuntime, Views
from trainwright.operator.tracing import Tracing
from trainwright.operator.trainjobs.keys import GeneratedKeys
from trainwright.operator.trainjobs.reconciler import CONTROLLER as TRAIN_JOB_CONTROLLER
from trainwright.operator.trainjobs.reconciler import TrainJobReconciler
from trainwright.pipeline import Watch


class Controllers:
    """`ca_certificate` gives the authority that pods trust when they report progress."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        views: Views,
        kinds: Kinds,
        *,
        ca_certificate: Callable[[], str],
        clock: Clock,
        metrics: Metrics,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self.views = views
        self._client = client
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._kinds = kinds
        reconciler = TrainJobReconciler(
            client,
            views,
            kinds,
            GeneratedKeys(),
            clock=clock,
            ca_certificate=ca_certificate,
            local_node=settings.local_runs,
        )
        self._train_jobs = self._train_job_controller(reconciler)
        self.all = [self._train_jobs, self._revision_controller(), *self._runtime_controllers()]
        kinds.attach(self._follow)
        kinds.wake_by(self._train_jobs.add)

    def look_at_all_jobs(self) -> None:
        """What any unfinished job may depend on has changed: plugins, a kind that came or went, the CA."""
        for job in self.views.jobs.store:
            if not job.is_finished:
                self._train_jobs.add(key_of(job))

    def controller(
        self,
        name: str,
        reconcile: Reconcile,
        watches: list[Watches],
        *,
        kind: str = "",
        begin: Callable[[], Awaitable[None]] | None = None,
    ) -> Controller:
        if self._tracing is not None:
            reconcile = self._tracing.reconcile(name, reconcile)
        workers = self._settings.configuration.workers(kind)
        return Controller(
            name, reconcile, watches, workers=workers, begin=begin, clock=self._clock, metrics=self._metrics
        )

    def _follow(self, watch: Watch, source: Source[Any]) -> None:
        keys = _named_by(watch.part_of) if watch.part_of else _train_jobs_of
        self._train_jobs.listen_to(Watches(source, keys, is_known=self._kinds.is_own_write))
        source.listen_answers(self.look_at_all_jobs)

    def _train_job_controller(self, reconciler: TrainJobReconciler) -> Controller:
        views = self.views
        return self.controller(
            TRAIN_JOB_CONTROLLER,
            reconciler.reconcile,
            [
                Watches(views.jobs, new_first=True, is_known=reconciler.is_own_write),
                Watches(views.runtimes, self._unfinished_jobs_of("TrainingRuntime")),
                Watches(views.cluster_runtimes, self._unfinished_jobs_of("ClusterTrainingRuntime")),
            ],
            kind=TRAIN_JOB,
            begin=lambda: self._kinds.wait_for_workloads(self._clock),
        )

    def _unfinished_jobs_of(self, kind: str) -> KeysOf:
        def keys_of(runtime: StoredRuntime) -> Iterable[Key]:
            name = f"{kind}/{runtime.metadata.namespace}/{runtime.metadata.name}"
            return [key_of(job) for job in self.views.jobs.store.by(BY_RUNTIME, name)]

        return keys_of

    def _revision_controller(self) -> Controller:
        seconds = self._settings.unused_revision_seconds
        prune = RevisionPruner(self._client, self.views, self._clock, unused_seconds=seconds)
        watches = [Watches(self.views.revisions), Watches(self.views.jobs, prune.revisions_of)]
        return self.controller(pruner.CONTROLLER, prune.reconcile, watches)

    def _runtime_controllers(self) -> Iterable[Controller]:
        enabled = self._settings.configuration.runtime_guard.enable
        for source in (self.views.runtimes, self.views.cluster_runtimes):
            guard = RuntimeGuard(self._client, self.views, source, enabled=enabled)
            watches = [Watches(source), Watches(self.views.jobs, guard.runtimes_of)]
            kind = f"{guard.resource.kind}.{guard.resource.group}"
            yield self.controller(guard.name, guard.reconcile, watches, kind=kind)


_owner = controlled_by("TrainJob")


def _train_jobs_of(thing: Any) -> Iterable[Key]:
    """The TrainJob that controls an object, and the one whose name it has: that one may wait for the name."""
    return {*_owner(thing), *itself(thing)}


def _named_by(label: str) -> KeysOf:
    """The TrainJob of a workload that a part of it names; a workload has its TrainJob's name."""

    def keys_of(part: Any) -> Iterable[Key]:
        name = part.metadata.label(label)
        return (Key(part.metadata.namespace, name),) if name else ()

    return keys_of
