"""A live view of one TrainJob: the job, its JobSet and its pods, kept current by three watches.

In: the API's events. Out: `changed()` returns whenever the view may show something new. When the API server goes away
the view keeps what it last saw, says so through `connected`, and follows again as soon as the server is back.

This is not `controlloop`'s informer, for two reasons: a user wants to see at once that the server is away (an informer
backs off for half a minute and does not tell), and a server that is started again may have another port, so the
kubeconfig is read anew for each attempt (an informer keeps its client).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trainwright.api.resources import JOB_SETS, PODS, TRAIN_JOBS, Resource
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.sentences import Phase, phase_of
from trainwright.client import kubeconfig
from trainwright.client.client import Client
from trainwright.client.errors import ClientError
from trainwright.client.requests import Selection
from trainwright.schema.jsonobject import Json

RECONNECT_SECONDS = 0.3


class JobView:
    """One TrainJob with its JobSet and pods as the API shows them, kept current inside `async with`."""

    def __init__(self, cluster: ClusterDirectory, namespace: str, name: str) -> None:
        by_name: Selection = {"field_selector": f"metadata.name={name}"}
        self._jobs = _Mirror(cluster, TRAIN_JOBS, namespace, by_name, self.announce)
        self._jobsets = _Mirror(cluster, JOB_SETS, namespace, by_name, self.announce)
        self._pods = _Mirror(cluster, PODS, namespace, {"label_selector": f"{JOBSET_NAME}={name}"}, self.announce)
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> JobView:
        for mirror in (self._jobs, self._jobsets, self._pods):
            task = asyncio.create_task(mirror.follow(), name=f"follow {mirror.resource.plural}")
            task.add_done_callback(lambda _: self.announce())
            self._tasks.append(task)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def job(self) -> Json | None:
        return next(iter(self._jobs.items.values()), None)

    @property
    def jobset(self) -> Json | None:
        return next(iter(self._jobsets.items.values()), None)

    @property
    def pods(self) -> list[Json]:
        return list(self._pods.items.values())

    @property
    def phase(self) -> Phase | None:
        """The job's phase, or None while there is no job."""
        return phase_of(self.job, self.jobset, self.pods) if self.job else None

    @property
    def connected(self) -> bool:
        return all(mirror.connected for mirror in (self._jobs, self._jobsets, self._pods))

    @property
    def is_empty(self) -> bool:
        """Whether the server shows no job, no JobSet and no pods."""
        return self.connected and not (self._jobs.items or self._jobsets.items or self._pods.items)

    async def changed(self) -> None:
        """Returns when something changed, or after `announce`. Raises the error that ended a watch for good."""
        await self._news.wait()
        self._news.clear()
        for task in self._tasks:
            if task.done():
                task.result()

    def announce(self) -> None:
        self._news.set()


class _Mirror:
    """The objects of one selection, as of the last event."""

    def __init__(
        self,
        cluster: ClusterDirectory,
        resource: Resource,
        namespace: str,
        selection: Selection,
        announce: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self.resource = resource
        self._namespace = namespace
        self._selection = selection
        self._announce = announce
        self.items: dict[str, Json] = {}
        self.connected = False

    async def follow(self) -> None:
        while True:
            try:
                async with Client.to(kubeconfig.load(self._cluster.kubeconfig)) as client:
                    while True:  # a watch that the server ended is opened again after a new list
                        await self._list_and_watch(client)
            except ClientError:
                self.connected = False
                self._announce()
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _list_and_watch(self, client: Client) -> None:
        listed = await client.list(self.resource, self._namespace, **self._selection)
        self.items = {item["metadata"]["uid"]: item for item in listed.items or ()}
        self.connected = True
        self._announce()
        since: Selection = {**self._selection, "resource_version": listed.resource_version}
        async with client.watch(self.resource, self._namespace, **since) as events:
            async for event in events:
                if event.object is None:
                    continue
                uid = event.object["metadata"]["uid"]
                if event.type == "DELETED":
                    self.items.pop(uid, None)
                else:
                    self.items[uid] = event.object
                self._announce()
