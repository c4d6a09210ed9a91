"""Keeps the server's own controllers running: one that fails is named and started again, or ends the server.

A controller that fails is a defect of ours. It begins again from the present state after a pause that grows with each
failure; one that cannot get going at all ends the server with `ControllerFailed`, so that it never goes missing
behind a server that seems well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol

from trainwright.clock import Clock
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.table import Event

log = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
STEADY_SECONDS = 60.0  # a controller that ran so long had got going
ATTEMPTS = 6  # failures in a row, each before it was steady, that end the server


class Controller(Protocol):
    """Something that the server does on its own."""

    name: str  # as the log calls it

    def observe(self, event: Event) -> None:
        """Note what a committed change concerns. Called on the event loop, in the order of versions."""

    def resync(self) -> None:
        """Forget what was noted, and note everything that the present state asks for."""

    async def run(self) -> None:
        """Work on what was noted, until cancelled."""


class ControllerFailed(Exception):
    """A controller failed again and again; the server cannot do without it."""


class Supervised:
    """One controller, kept running."""

    def __init__(self, controller: Controller, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._broken: asyncio.Future[None] | None = None  # set while it runs; done when it fails to observe

    def observe(self, event: Event) -> None:
        try:
            self._controller.observe(event)
        except Exception as error:  # noqa: BLE001 - the supervisor: `run` reports it
            # The change is committed, and everyone else must hear of it. The controller begins anew.
            if self._broken is not None and not self._broken.done():
                self._broken.set_exception(error)

    async def run(self) -> None:
        """Until cancelled, or until `ControllerFailed` is raised."""
        name, failures = self._controller.name, 0
        while True:
            began = self._clock.now()
            try:
                if failures:
                    self._controller.resync()
                await self._run_once()
            except Exception as error:
                failures = 1 if self._clock.now() - began >= STEADY_SECONDS else failures + 1
                if failures == ATTEMPTS:
                    raise ControllerFailed(
                        f"the API server's {name} failed {failures} times in a row: {error}"
                    ) from error
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (failures - 1))
                log.exception("the API server's %s failed and begins anew in %g s", name, pause)
                await self._clock.sleep(pause)

    async def _run_once(self) -> None:
        broken = self._broken = asyncio.get_running_loop().create_future()
        running = asyncio.ensure_future(self._controller.run())
        try:
            done, _ = await asyncio.wait((running, broken), return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                future.result()
            raise RuntimeError("it ended without being asked to")
        finally:
            self._broken = None
            broken.cancel()
            running.cancel()
            await asyncio.gather(running, broken, return_exceptions=True)


class Supervision:
    """`async with`: the controllers run while the block does.

    If one fails for good, the block is cancelled and `ControllerFailed` raised in its place. (A TaskGroup would do
    that, too, but would also wrap whatever the block itself raises.)
    """

    def __init__(self, controllers: Iterable[Controller], state: State) -> None:
        self._controllers = tuple(controllers)
        self._state = state
        self._tasks: list[asyncio.Task[None]] = []
        self._owner: asyncio.Task[object] | None = None
        self._failed: BaseException | None = None

    async def __aenter__(self) -> None:
        self._owner = asyncio.current_task()
        for controller in self._controllers:
            controller.resync()
            supervised = Supervised(controller, self._state.clock)
            self._state.listeners.append(supervised.observe)
            task = asyncio.create_task(supervised.run(), name=controller.name)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._failed is not None:
            return
        self._failed = task.exception()
        if self._owner is not None:
            self._owner.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failed is not None:
            if kind is asyncio.CancelledError and self._owner is not None:
                self._owner.uncancel()
            raise self._failed
