"""The operator as a whole: sources, controllers, servers, wired together and run as one TaskGroup.

    async with Operator(client, configuration) as operator:
        await operator.run()          # until cancelled

The embedded cluster runs it exactly so, with a client of its own kubeconfig; it cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from trainwright.api.trainjob import TrainJob
from trainwright.client import Client
from trainwright.controlloop import Clock, Controller, Key, Manager, SystemClock, Watches, controlled_by, itself
from trainwright.controlloop.source import KeysOf
from trainwright.operator.keys import GeneratedKeys
from trainwright.operator.trainjob import CONTROLLER, TrainJobReconciler
from trainwright.operator.views import BY_RUNTIME, Partial, Views
from trainwright.pipeline import Framework, KeyMaterial
from trainwright.plugins import load


class Operator:
    """Everything that runs in a cluster, for one API server."""

    def __init__(
        self,
        client: Client,
        *,
        framework: Framework | None = None,
        keys: KeyMaterial | None = None,
        clock: Clock | None = None,
        workers: int = 1,
    ) -> None:
        clock = clock or SystemClock()
        self.views = Views()
        views = self.views
        self._reconciler = TrainJobReconciler(client, views, framework or load(), keys or GeneratedKeys())
        self.train_jobs = Controller(
            CONTROLLER,
            self._reconciler.reconcile,
            [
                Watches(views.jobs),
                Watches(views.job_sets, itself),  # of the TrainJob's name, whoever owns it
                Watches(views.config_maps, controlled_by("TrainJob")),
                Watches(views.pod_groups, itself),
                Watches(views.volcano_pod_groups, itself),
                Watches(views.runtimes, self._unfinished_jobs_of("TrainingRuntime")),
                Watches(views.cluster_runtimes, self._unfinished_jobs_of("ClusterTrainingRuntime")),
            ],
            workers=workers,
            clock=clock,
        )
        for source in (views.job_sets, views.pod_groups, views.volcano_pod_groups):
            source.listen_served(self._served)
        self._manager = Manager(client, [self.train_jobs], clock=clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def run(self) -> None:
        await self._manager.run()

    @property
    def is_ready(self) -> bool:
        """The stores have seen everything once."""
        return self._manager.is_synced

    def _unfinished_jobs_of(self, kind: str) -> KeysOf:
        def keys_of(runtime: Partial) -> Iterable[Key]:
            name = f"{kind}/{runtime.metadata.namespace}/{runtime.metadata.name}"
            return [_key(job) for job in self.views.jobs.store.by(BY_RUNTIME, name) if not job.is_finished]

        return keys_of

    def _served(self, served: bool) -> None:
        """A type that children need came or went: every unfinished job has something to say about it."""
        for job in self.views.jobs.store:
            if not job.is_finished:
                self.train_jobs.add(_key(job))


def _key(job: TrainJob) -> Key:
    return Key(job.metadata.namespace, job.metadata.name)
