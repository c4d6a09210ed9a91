"""A live view of one TrainJob: the job, its JobSet and its pods, kept current by three watches.

In: the API's events. Out: `changed()` returns whenever the view may show something new. When the API server goes away
the view keeps what it last saw, says so through `is_away`, and follows again as soon as the server is back. A watch
that breaks does not mean that the server is away: only a new connection that fails too does.

This is not `controlloop`'s informer, for two reasons: a user wants to see at once that the server is away (an informer
backs off for half a minute and does not tell), and a server that is started again may have another port, so the
kubeconfig is read anew for each attempt (an informer keeps its client).
"""

from __future__ import annotations

import asyncio
import time

from trainwright.api.phases import Phase
from trainwright.api.resources import JOB_SETS, PODS, TRAIN_JOBS
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.clusters.target import Target
from trainwright.client.mirror import Mirror
from trainwright.client.requests import Selection
from trainwright.schema.jsonobject import Json


class JobView:
    """One TrainJob with its JobSet and pods as the API shows them, kept current inside `async with`.

    It may begin before the TrainJob is created: whoever creates it then waits for no connection afterwards.
    """

    def __init__(self, target: Target, namespace: str, name: str) -> None:
        by_name: Selection = {"field_selector": f"metadata.name={name}"}
        self._jobs = Mirror(target.kubeconfig, TRAIN_JOBS, namespace, by_name, self.announce)
        self._jobsets = Mirror(target.kubeconfig, JOB_SETS, namespace, by_name, self.announce)
        by_label: Selection = {"label_selector": f"{JOBSET_NAME}={name}"}
        self._pods = Mirror(target.kubeconfig, PODS, namespace, by_label, self.announce)
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
        if not self.job:
            return None
        from trainwright.pipeline.reasons.sentences import phase_of  # with everything that explains a state

        return phase_of(self.job, self.jobset, self.pods, time.time())

    @property
    def connected(self) -> bool:
        return all(mirror.connected for mirror in (self._jobs, self._jobsets, self._pods))

    @property
    def is_away(self) -> bool:
        """Whether the server did not answer when it was asked last."""
        return any(mirror.is_away for mirror in (self._jobs, self._jobsets, self._pods))

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
