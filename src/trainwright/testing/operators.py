"""Runs the real operator inside a test: in a thread with its own event loop, with a transport that injects faults.

In: a kubeconfig and faults to inject. Out: an operator that is ready when the block is entered and ended when it is
left, by cancellation as on SIGTERM. After a `Crash` fault it neither sends nor receives anything: to the API server it
looks like a killed process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from trainwright.api.runtime import runtime_from
from trainwright.client import Client, HttpTransport
from trainwright.client.kubeconfig import load
from trainwright.operator.manager import Operator
from trainwright.testing.faults import FaultyTransport, Rule

READY_SECONDS = 30.0


class OperatorInThread:
    """`make` builds the operator from its client, so that a test can choose plugins, clock or configuration."""

    transports: ClassVar[list[tuple[Path, FaultyTransport]]] = []  # of every operator of this process, in order

    def __init__(
        self, kubeconfig: Path, *, rules: Iterable[Rule] = (), make: Callable[[Client], Operator] = Operator
    ) -> None:
        self._kubeconfig = kubeconfig
        self._rules = list(rules)
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operator under test", daemon=True)
        self.error: BaseException | None = None
        self.transport: FaultyTransport
        self.operator: Operator

    def __enter__(self) -> OperatorInThread:
        runtime_from({})  # msgspec learns a type at its first use; two threads that do so at once crash the process
        self._thread.start()
        end = time.monotonic() + READY_SECONDS
        while not (self._up.is_set() and (self.operator.is_ready or self.has_crashed)):
            if self.error is not None or not self._thread.is_alive():
                raise AssertionError("the operator ended before it was ready") from self.error
            if time.monotonic() > end:
                self.stop()
                raise AssertionError(f"the operator was not ready after {READY_SECONDS:.0f} s")
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None and self.error is not None:
            raise AssertionError("the operator ended with an error") from self.error

    def stop(self) -> None:
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(30)
        assert not self._thread.is_alive(), "the operator did not end within 30 s of its cancellation"

    @property
    def has_crashed(self) -> bool:
        return self._up.is_set() and self.transport.crashed.is_set()

    def wait_for_crash(self, seconds: float) -> bool:
        """Waits until a `Crash` rule has matched. Returns False after the timeout."""
        end = time.monotonic() + seconds
        while not self.has_crashed and time.monotonic() < end:
            time.sleep(0.02)
        return self.has_crashed

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - carried over to the thread that owns this operator
            self.error = error

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self.transport = FaultyTransport(HttpTransport(load(self._kubeconfig)), self._rules)
        OperatorInThread.transports.append((self._kubeconfig, self.transport))
        async with Client(self.transport) as client:
            self.operator = self._make(client)
            self._up.set()
            await self.operator.run()
