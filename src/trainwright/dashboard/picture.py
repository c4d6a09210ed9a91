"""The TrainJobs, JobSets and pods that a viewer may read, and a row of the jobs view for each TrainJob.

In: three mirrors of the API. Out: rows, made again only for the TrainJobs that changed; each `Feed` says which those
are. What may not be read is left out: without JobSets and pods a row says what the TrainJob's own status says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from trainwright.api.resources import JOB_SETS, PODS, TRAIN_JOBS, Resource
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.client.errors import ClientError, Forbidden
from trainwright.client.kubeconfig import Connection
from trainwright.client.mirror import Mirror
from trainwright.client.requests import Selection
from trainwright.dashboard.curves import Curves
from trainwright.dashboard.rows import is_settled, row_of
from trainwright.schema.jsonobject import Json

Key = tuple[str, str]
"""Namespace and name of a TrainJob."""

AGAIN_SECONDS = 5.0
"""After so long, what depends on the time is said anew: that nobody acts, that a probe never succeeds."""


class Feed:
    """What has changed since somebody looked last."""

    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self.is_anew = True
        """Everything may have changed."""
        self.news = asyncio.Event()
        self.news.set()

    def tell(self, key: Key | None) -> None:
        if key is None:
            self.is_anew = True
        else:
            self.keys.add(key)
        self.news.set()


class Picture:
    """Kept current inside `async with`."""

    def __init__(self, connection: Callable[[], Connection], namespace: str | None, curves: Curves) -> None:
        def mirror(resource: Resource, selection: Selection, key_of: Callable[[Json], Key]) -> Mirror:
            def on_change(changed: Json | None) -> None:
                self._index(resource, key_of, changed)

            return Mirror(connection, resource, namespace, selection, self._wake, on_change)

        self._curves = curves
        self._mirrors = {
            TRAIN_JOBS: mirror(TRAIN_JOBS, {}, _own_key),
            JOB_SETS: mirror(JOB_SETS, {}, _own_key),
            PODS: mirror(PODS, {"label_selector": JOBSET_NAME}, _key_of_pod),
        }
        self._indexes: dict[Resource, dict[Key, dict[str, Json]]] = {resource: {} for resource in self._mirrors}
        self._rows: dict[Key, Json] = {}
        self._made: dict[Key, float] = {}
        self._feeds: set[Feed] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self.forbidden: list[str] = []
        self.failure = ""
        """Why there is no picture at all."""

    async def __aenter__(self) -> Self:
        for resource, mirror in self._mirrors.items():
            self._tasks.append(asyncio.create_task(self._follow(resource, mirror), name=f"mirror {resource.plural}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextmanager
    def feed(self) -> Iterator[Feed]:
        feed = Feed()
        self._feeds.add(feed)
        try:
            yield feed
        finally:
            self._feeds.discard(feed)

    # Reading

    @property
    def is_away(self) -> bool:
        """Whether the API server did not answer when it was asked last."""
        return any(mirror.is_away for mirror in self._mirrors.values())

    @property
    def is_complete(self) -> bool:
        """Whether everything that may be read has been read once."""
        return bool(self.failure) or all(
            mirror.connected or resource.group_resource in self.forbidden for resource, mirror in self._mirrors.items()
        )

    @property
    def sees_workloads(self) -> bool:
        return JOB_SETS.group_resource not in self.forbidden and PODS.group_resource not in self.forbidden

    def keys(self) -> list[Key]:
        return list(self._indexes[TRAIN_JOBS])

    def job(self, key: Key) -> Json | None:
        return next(iter(self._indexes[TRAIN_JOBS].get(key, {}).values()), None)

    def jobset(self, key: Key) -> Json | None:
        return next(iter(self._indexes[JOB_SETS].get(key, {}).values()), None)

    def pods(self, key: Key) -> list[Json]:
        return list(self._indexes[PODS].get(key, {}).values())

    def row(self, key: Key) -> Json | None:
        """The row of a TrainJob, None when there is no such."""
        job = self.job(key)
        if job is None:
            return None
        now = time.time()
        row = self._rows.get(key)
        if row is None or (now - self._made[key] > AGAIN_SECONDS and not is_settled(row)):
            curve = self._curves.note(job)
            row = row_of(job, self.jobset(key), self.pods(key), now, sees_workloads=self.sees_workloads)
            row["spark"] = curve.spark() if curve else None
            self._rows[key], self._made[key] = row, now
        return row

    def unsettled(self) -> list[Key]:
        """The TrainJobs whose row depends on the time."""
        return [key for key in self.keys() if (row := self._rows.get(key)) is None or not is_settled(row)]

    # Following

    async def _follow(self, resource: Resource, mirror: Mirror) -> None:
        try:
            await mirror.follow()
        except Forbidden as error:
            self.forbidden.append(resource.group_resource)
            if resource is TRAIN_JOBS:
                self.failure = str(error)
        except ClientError as error:
            self.failure = str(error)
        self._rows.clear()
        self._tell(None)

    def _index(self, resource: Resource, key_of: Callable[[Json], Key], changed: Json | None) -> None:
        index, items = self._indexes[resource], self._mirrors[resource].items
        if changed is None:
            index.clear()
            for uid, item in items.items():
                index.setdefault(key_of(item), {})[uid] = item
            self._rows.clear()
            self._tell(None)
            return
        key, uid = key_of(changed), changed["metadata"]["uid"]
        if uid in items:
            index.setdefault(key, {})[uid] = changed
        elif (found := index.get(key)) is not None:
            found.pop(uid, None)
            if not found:
                del index[key]
        if resource is TRAIN_JOBS:
            self._curves.note(changed)
        self._rows.pop(key, None)
        self._tell(key)

    def _tell(self, key: Key | None) -> None:
        for feed in self._feeds:
            feed.tell(key)

    def _wake(self) -> None:
        """The server came or went: the objects may be the same, and the page says so all the same."""
        for feed in self._feeds:
            feed.news.set()


def _own_key(obj: Json) -> Key:
    return str(obj["metadata"].get("namespace") or ""), str(obj["metadata"]["name"])


def _key_of_pod(pod: Json) -> Key:
    labels = pod["metadata"].get("labels") or {}
    return str(pod["metadata"].get("namespace") or ""), str(labels.get(JOBSET_NAME) or "")
