"""The manager: one TaskGroup with the informers of all sources, the workers of all controllers, and other tasks.

When one of them ends with an error, all are cancelled and `run` raises: half a manager is worse than none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trainwright.client import Client
from trainwright.clock import Clock, SystemClock
from trainwright.controlloop.controller import Controller
from trainwright.controlloop.informer import Informer
from trainwright.controlloop.source import Source

Task = Callable[[], Awaitable[None]]


class Manager:
    """`await Manager(client, controllers).run()`; cancel it to stop.

    `sources` are watched in addition to those of the controllers. With `lead` (leader election), controllers run only
    while it calls them; informers run from the start, so that a new leader has complete stores.
    """

    def __init__(
        self,
        client: Client,
        controllers: Sequence[Controller],
        *,
        sources: Sequence[Source[Any]] = (),
        tasks: Sequence[Task] = (),
        lead: Callable[[Task], Awaitable[None]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._controllers = list(controllers)
        self._tasks = list(tasks)
        self._lead = lead
        self._clock = clock or SystemClock()
        unique: dict[int, Source[Any]] = {id(source): source for source in sources}
        for controller in self._controllers:
            unique.update({id(watch.source): watch.source for watch in controller.watches})
        self.sources: list[Source[Any]] = list(unique.values())

    @property
    def is_synced(self) -> bool:
        return all(source.is_synced for source in self.sources)

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            for controller in self._controllers:
                controller.queue.close()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for source in self.sources:
                informer = Informer(self._client, source, self._clock)
                group.create_task(informer.run(), name=f"watch {source.resource.group_resource}")
            for task in self._tasks:
                group.create_task(_run(task))
            if self._lead is None:
                group.create_task(self._run_controllers(), name="controllers")
            else:
                group.create_task(_run(lambda: self._lead_controllers()), name="controllers, when leading")

    async def _lead_controllers(self) -> None:
        assert self._lead is not None
        await self._lead(self._run_controllers)

    async def _run_controllers(self) -> None:
        """Once, or with election as often as this process leads; the queues fill meanwhile."""
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run(), name=controller.name)


async def _run(task: Task) -> None:
    await task()
