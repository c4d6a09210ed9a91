"""The kinds that plugins name: a source for each, watched for as long as a plugin names it.

In: the plugins in force (`use`), which may change while the operator runs. Out: for each TrainJob its workload, its
other children, and why a kind that it needs cannot be watched. The operator knows none of these kinds by name.

A watch that is refused, whose kind is not installed, or whose objects cannot be decoded concerns the jobs that need
that kind; nobody else waits for it, and it comes alive by itself. What is watched in vain is said once in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta, PartialObjectMetadata
from trainwright.api.resources import SECRETS, Resource
from trainwright.api.trainjob import TrainJob
from trainwright.client import Client
from trainwright.clock import Clock, deadline
from trainwright.controlloop import Delta, Key, OwnWrites, Source, key_of
from trainwright.controlloop.informer import Informer
from trainwright.operator.stores.views import thin_metadata
from trainwright.pipeline import (
    Framework,
    NamedWatch,
    ObjectName,
    PipelineError,
    Plan,
    Watch,
    Workload,
    WorkloadUnknown,
    workload_of,
)

log = logging.getLogger(__name__)

BY_OWNER = "owner"
BY_WORKLOAD = "workload"
AGAIN_SECONDS = 30.0
PATIENCE_SECONDS = 10.0

Attach = Callable[[Watch, Source[Any]], None]


class NotYetListed(Exception):
    """A job has no workload in sight, and a kind that could be its workload has not been listed yet."""


class Kinds:
    def __init__(self, framework: Framework) -> None:
        self._sources: dict[Watch, Source[Any]] = {}
        self._written: dict[Watch, OwnWrites[Any]] = {}  # of the kinds that can be a workload
        self._gone: dict[str, tuple[Watch, Any]] = {}  # workloads whose deletion we saw, in their last state, by owner
        self._wake: Callable[[Key], None] = lambda key: None
        self._attached: list[Attach] = []
        self._changed = asyncio.Event()
        self.framework = Framework(())
        self.use(framework)
        self._at_start = tuple(self._sources.values())

    def use(self, framework: Framework) -> None:
        """From now on these are the plugins."""
        self.framework = framework
        for failure in framework.unwatchable.values():
            log.error("%s; its jobs wait", failure)
        named = {it.watch for it in framework.watches}
        for watch in self._sources.keys() - named:
            del self._sources[watch]
            self._written.pop(watch, None)
        for watch in dict.fromkeys(it.watch for it in framework.watches):
            if watch not in self._sources:
                source = self._sources[watch] = _source(watch)
                if watch.workload:
                    self._written[watch] = OwnWrites(source, lambda key: self._wake(key))
                    source.listen(self._deletion_listener(watch))
                for attach in self._attached:
                    attach(watch, source)
        self._changed.set()

    def attach(self, attach: Attach) -> None:
        """Be told of every source, those there are and those to come."""
        self._attached.append(attach)
        for watch, source in self._sources.items():
            attach(watch, source)

    def wake_by(self, wake: Callable[[Key], None]) -> None:
        """What to call with the key of a job whose workload turned out to be gone."""
        self._wake = wake

    def _deletion_listener(self, watch: Watch) -> Callable[[Delta[Any]], None]:
        def listen(delta: Delta[Any]) -> None:
            thing = delta.new or delta.old
            for owner in _owners(thing):
                if delta.new is None and delta.witnessed:
                    self._gone[owner] = (watch, thing)
                else:
                    self._gone.pop(owner, None)

        return listen

    @property
    def unanswered(self) -> list[str]:
        """The kinds that were named at the start and that the API server has said nothing about yet."""
        return [source.resource.plural for source in self._at_start if not source.is_answered]

    async def wait_for_workloads(self, clock: Clock) -> None:
        """Until every kind that can be a workload has been listed or refused, but not for long: a kind that stays
        silent concerns its own jobs only. A job that is looked at earlier is looked at twice.
        """
        with contextlib.suppress(TimeoutError):
            async with deadline(clock, PATIENCE_SECONDS):
                for source in [source for _, source in self._workloads()]:
                    await source.wait_answered()

    # Watching

    async def run(self, client: Client, clock: Clock) -> None:
        """Watches, until cancelled."""
        running: dict[Watch, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                for watch in running.keys() - self._sources.keys():
                    running.pop(watch).cancel()
                for watch in self._sources.keys() - running.keys():
                    name = f"watch {watch.resource.group_resource}"
                    running[watch] = group.create_task(self._watch(watch, client, clock), name=name)
                await self._changed.wait()

    async def _watch(self, watch: Watch, client: Client, clock: Clock) -> None:
        source = self._sources[watch]
        while True:
            try:
                await Informer(client, source, clock).run()
            except Exception as error:  # a plugin's own type may raise whatever it likes while it is decoded
                log.error("watching %s: %r", watch.resource.group_resource, error, exc_info=error)
                source.troubled(f"the watch failed: {error!r}")
                await clock.sleep(AGAIN_SECONDS)

    # A job's objects

    def workload_of(self, job: TrainJob) -> Workload | None:
        """The workload that the stores show; raises `WorkloadUnknown` and `NotYetListed`."""
        found: list[tuple[NamedWatch, Any]] = []
        for named, source in self._workloads():
            thing = self._written[named.watch].get(key_of(job))
            if thing is None:
                continue
            if source.trouble and thing.metadata.is_controlled_by(job.metadata.uid):
                raise WorkloadUnknown(_cannot_watch(named.plugin, source))
            found.append((named, thing))
        workload = workload_of(job, found, self.framework)
        if workload is not None:
            return workload
        if not all(source.is_answered for _, source in self._workloads()):
            raise NotYetListed
        builder = job.status.workload_plugin if job.status is not None else None
        if builder and not self.framework.reports(builder):
            raise WorkloadUnknown(
                f"plugin {builder} built the workload of this TrainJob and is not loaded any more; load it again, "
                "or delete the TrainJob"
            )
        return None

    def workload_in(self, job: TrainJob, watch: Watch, thing: Any) -> Workload | None:
        """The workload, if this object is it."""
        found = [(named, thing) for named in self.framework.watches if named.watch == watch]
        return workload_of(job, found, self.framework)

    def saw_go(self, job: TrainJob) -> bool:
        """Whether we saw a workload of this job being deleted, whatever its status says of one."""
        return job.metadata.uid in self._gone

    def last_seen(self, job: TrainJob) -> Workload | None:
        """The job's workload in its last state, if we saw it being deleted.

        Raises `WorkloadUnknown` while a kind that could be the workload cannot be watched.
        """
        for named, source in self._workloads():
            if source.trouble:
                raise WorkloadUnknown(_cannot_watch(named.plugin, source))
        found = self._gone.get(job.metadata.uid)
        return self.workload_in(job, *found) if found is not None else None

    def forget(self, job: TrainJob) -> None:
        """The job has ended, or has another workload."""
        self._gone.pop(job.metadata.uid, None)

    def remember(self, job: TrainJob, plugin: str, body: bytes) -> Workload | None:
        """The workload in the API server's answer to a write of ours; it counts until the watch shows it."""
        written = msgspec.json.decode(body, type=_Typed)
        for named, _ in self._workloads():
            if named.plugin == plugin and named.watch.is_of(written.api_version, written.kind):
                try:
                    thing = msgspec.json.decode(body, type=named.watch.decode)
                except msgspec.ValidationError as error:
                    raise WorkloadUnknown(f"plugin {plugin} cannot read its {written.kind}: {error}") from error
                self._written[named.watch].remember(_thin(thing))
                self.forget(job)
                return workload_of(job, [(named, thing)], self.framework)
        return None

    def is_own_write(self, delta: Delta[Any]) -> bool:
        """Whether a change that a watch shows is a workload as we wrote it: the pass that did so has judged it."""
        return any(written.is_shown_by(delta) for written in self._written.values())

    def children_of(self, job: TrainJob) -> frozenset[ObjectName]:
        """The objects that this job controls."""
        return frozenset(
            _name(watch.resource, thing.metadata.name)
            for watch, source in self._sources.items()
            for thing in source.store.by(BY_OWNER, job.metadata.uid)
        )

    def known_of(self, job: TrainJob, plan: Plan) -> frozenset[ObjectName]:
        """The objects of the plan whose names the stores know, whoever controls them."""
        names = {ObjectName.of(intention.object) for intention in plan.objects}
        return frozenset(
            name
            for name in names
            for watch, source in self._sources.items()
            if watch.is_of(name.api_version, name.kind) and source.store.get(Key(job.metadata.namespace, name.name))
        )

    def taken_from(self, job: TrainJob) -> frozenset[ObjectName]:
        """The objects of the job's name that it does not control."""
        key, uid = key_of(job), job.metadata.uid
        return frozenset(
            _name(watch.resource, thing.metadata.name)
            for watch, source in self._sources.items()
            if not watch.part_of
            if (thing := source.store.get(key)) is not None and not thing.metadata.is_controlled_by(uid)
        )

    def parts_of(self, job: TrainJob, workload: Workload) -> list[Any]:
        """What the workload's own controller made for it, of the kinds that its plugin watches for that."""
        key = f"{job.metadata.namespace}/{job.metadata.name}"
        return [
            part
            for named in self.framework.watches
            if named.plugin == workload.plugin and named.watch.part_of
            for part in self._sources[named.watch].store.by(BY_WORKLOAD, key)
            if part.metadata.is_controlled_by(workload.metadata.uid)
        ]

    def why_no_parts(self, workload: Workload) -> str:
        """Why the parts of this workload cannot be watched; empty when they can."""
        for named in self.framework.watches:
            source = self._sources[named.watch]
            if named.plugin == workload.plugin and named.watch.part_of and source.trouble:
                return _cannot_watch(named.plugin, source)
        return ""

    def find(self, job: TrainJob, name: ObjectName) -> ObjectMeta | None:
        """An object that this job controls."""
        for watch, source in self._sources.items():
            if watch.is_of(name.api_version, name.kind):
                thing = source.store.get(Key(job.metadata.namespace, name.name))
                if thing is not None and thing.metadata.is_controlled_by(job.metadata.uid):
                    metadata: ObjectMeta = thing.metadata
                    return metadata
        return None

    # What a plan needs

    def check(self, plan: Plan) -> None:
        """Raises `PipelineError` when an object of the plan is of a kind that cannot be watched."""
        for (api_version, kind), plugin in plan.needs.items():
            for watch, source in self._sources.items():
                if watch.is_of(api_version, kind) and source.trouble:
                    raise PipelineError(_cannot_watch(plugin, source))
                if watch.is_of(api_version, kind) and not source.is_synced:
                    raise NotYetListed

    def resource_of(self, body: Mapping[str, Any]) -> Resource:
        """The resource of a rendered object. A build renders only kinds that plugins name, and Secrets."""
        for watch in self._sources:
            if watch.is_of(body["apiVersion"], body["kind"]):
                return watch.resource
        if (body["apiVersion"], body["kind"]) != (SECRETS.api_version, SECRETS.kind):
            raise NotYetListed  # the plugins changed after the build: every job is looked at again
        return SECRETS

    def workload_resources(self) -> list[Resource]:
        return list(dict.fromkeys(named.watch.resource for named, _ in self._workloads()))

    def _workloads(self) -> Iterator[tuple[NamedWatch, Source[Any]]]:
        for named in self.framework.watches:
            if named.watch.workload:
                yield named, self._sources[named.watch]


class _Typed(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str


def _name(resource: Resource, name: str) -> ObjectName:
    return ObjectName(resource.api_version, resource.kind, name)


def _cannot_watch(plugin: str, source: Source[Any]) -> str:
    return f"plugin {plugin} cannot watch {source.resource.plural}: {source.trouble}"


def _source(watch: Watch) -> Source[Any]:
    return Source(
        watch.resource,
        watch.decode,
        label_selector=watch.label_selector or None,
        metadata_only=watch.decode is PartialObjectMetadata,
        indexes={BY_OWNER: _owners, **({BY_WORKLOAD: _workload_named_by(watch.part_of)} if watch.part_of else {})},
        thin=_thin,
    )


def _workload_named_by(label: str) -> Callable[[Any], Iterable[str]]:
    def workloads(part: Any) -> Iterable[str]:
        name = part.metadata.label(label)
        return (f"{part.metadata.namespace}/{name}",) if name else ()

    return workloads


def _owners(thing: Any) -> Iterable[str]:
    owner = thing.metadata.controller
    return (owner.uid,) if owner is not None else ()


def _thin(thing: Any) -> Any:
    return msgspec.structs.replace(thing, metadata=thin_metadata(thing.metadata))
