"""Keeps a runtime from vanishing while an unfinished TrainJob refers to it.

A runtime in use carries the finalizer `trainer.kubeflow.org/resource-in-use`; it goes as soon as the last such job
ends. Switched off, the guard only takes away finalizers that it, or an older release, left behind.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.api.mergepatches import finalizers_patch
from trainwright.api.resources import TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from trainwright.api.trainjob import TrainJob
from trainwright.client import Client, NotFound
from trainwright.controlloop import Done, Key, Outcome, Source
from trainwright.operator.fieldmanager import FIELD_MANAGER
from trainwright.operator.stores.views import BY_RUNTIME, StoredRuntime, Views

FINALIZER = "trainer.kubeflow.org/resource-in-use"


class RuntimeGuard:
    """One for each kind of runtime."""

    def __init__(self, client: Client, views: Views, source: Source[StoredRuntime], *, enabled: bool = True) -> None:
        self._client = client
        self._views = views
        self._source = source
        self._enabled = enabled

    @property
    def resource(self) -> Resource:
        return self._source.resource

    @property
    def name(self) -> str:
        return f"{self.resource.kind.lower()}_controller"

    def runtimes_of(self, job: TrainJob) -> Iterable[Key]:
        """The runtime of this kind that a job refers to."""
        if job.spec is not None and job.spec.runtime_ref.kind == self.resource.kind:
            namespace = job.metadata.namespace if self.resource.namespaced else ""
            yield Key(namespace, job.spec.runtime_ref.name)

    async def reconcile(self, key: Key) -> Outcome:
        runtime = self._source.store.get(key)
        if runtime is None:
            return Done()
        metadata = runtime.metadata
        finalizers = list(metadata.finalizers or ())
        in_use = self._enabled and self._views.jobs.store.has(BY_RUNTIME, self._index(key))
        if in_use and FINALIZER not in finalizers and not metadata.is_being_deleted:
            await self._write(key, runtime, [*finalizers, FINALIZER])
        elif not in_use and FINALIZER in finalizers:
            # The store may lag behind a job created a moment ago: with the runtime about to go, look once more.
            if self._enabled and metadata.is_being_deleted and await self._is_in_use(key):
                return Done()
            await self._write(key, runtime, [name for name in finalizers if name != FINALIZER])
        return Done()

    def _index(self, key: Key) -> str:
        return f"{self.resource.kind}/{key.namespace}/{key.name}"

    async def _is_in_use(self, key: Key) -> bool:
        namespace = key.namespace if self.resource is TRAINING_RUNTIMES else None
        live = await self._client.list(TRAIN_JOBS, namespace, decode=TrainJob)
        return _has_unfinished(job for job in live.items or () if key in self.runtimes_of(job))

    async def _write(self, key: Key, runtime: StoredRuntime, finalizers: list[str]) -> None:
        try:
            await self._client.patch(
                self.resource,
                finalizers_patch(runtime.metadata, finalizers),
                name=key.name,
                namespace=key.namespace or None,
                field_manager=FIELD_MANAGER,
                decode=bytes,
            )
        except NotFound:
            pass


def _has_unfinished(jobs: Iterable[TrainJob]) -> bool:
    return any(not job.is_finished for job in jobs)
