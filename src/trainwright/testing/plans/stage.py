"""The stage: an API server in virtual time, one or two operators on it, and whoever else acts; all changes recorded.

Operators meet the plan's faults; when one dies or ends, another takes its place, as a Deployment would see to.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from types import TracebackType

import msgspec

from trainwright.api.configuration import LeaderElectionConfig, local
from trainwright.client import Client
from trainwright.client.requests import Request
from trainwright.client.servertime import ServerTime
from trainwright.clock import Clock, Timer, VirtualClock
from trainwright.embedded.apiserver.inprocess import InProcessTransport
from trainwright.embedded.apiserver.storage.table import Event
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.testing.faults import FaultyTransport, Rule
from trainwright.testing.plans.cast import Cast
from trainwright.testing.plans.lens import Lens, View
from trainwright.testing.plans.window import Death
from trainwright.testing.virtualserver import VirtualServer
from trainwright.testing.watchlog import Change

STEP_SECONDS = 0.5
RESTART_SECONDS = 1.0
LONGEST = 900.0
LONGEST_UNQUIET = 7200.0
"""A write that is refused twelve times is tried again after minutes."""
KINDS = {
    "trainjobs.trainer.kubeflow.org": "TrainJob",
    "trainingruntimes.trainer.kubeflow.org": "TrainingRuntime",
    "clustertrainingruntimes.trainer.kubeflow.org": "ClusterTrainingRuntime",
    "jobsets.jobset.x-k8s.io": "JobSet",
    "controllerrevisions.apps": "ControllerRevision",
    "podgroups.scheduling.x-k8s.io": "PodGroup",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
}


class NeverHappened(Exception):
    """What a workload waited for did not come true."""


class OwnClock:
    """An operator's clock: it may run fast, and its wall clock may be off."""

    def __init__(self, true: VirtualClock, rate: float = 1.0, skew: float = 0.0) -> None:
        self._true = true
        self._rate = rate
        self._zero = true.now()
        self.skew = skew

    def now(self) -> float:
        return self._zero + (self._true.now() - self._zero) * self._rate

    def wall(self) -> float:
        return self._true.wall() + self.skew + (self._true.now() - self._zero) * (self._rate - 1.0)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self._true.call_later(seconds / self._rate, callback)

    async def sleep(self, seconds: float) -> None:
        await self._true.sleep(seconds / self._rate)


class Replica:
    """One place for an operator: who stands in it now, and all requests of those who stood there."""

    def __init__(self, stage: Stage, name: str, rules: list[Rule], clock: Clock) -> None:
        self.name = name
        self.rules = rules
        self.clock = clock
        self.view = View(stage.clock)
        self.transports: list[FaultyTransport] = []
        self.task: asyncio.Task[None] | None = None
        self.starts = 0
        self.deaths: list[Death] = []
        self._stage = stage

    def start(self) -> None:
        stage = self._stage
        self.starts += 1
        inner = InProcessTransport(stage.server.server)
        stage.in_process.append(inner)
        transport = FaultyTransport(Lens(inner, self.view), self.rules, clock=stage.clock)
        self.transports.append(transport)
        client = Client(transport)
        client.server_time = ServerTime(self.clock.wall, self.clock.now)
        configuration = local()
        if stage.elects:
            election = LeaderElectionConfig(leader_elect=True, resource_name="trainer", resource_namespace="default")
            configuration = msgspec.structs.replace(configuration, leader_election=election)
        settings = Settings(configuration=configuration, identity=f"{self.name}-{self.starts}")
        self.operator = Operator(client, settings, clock=self.clock)
        self.task = asyncio.create_task(self.operator.run(), name=self.name)

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            self.task = None

    @property
    def has_crashed(self) -> bool:
        return bool(self.transports) and self.transports[-1].crashed.is_set()

    async def look(self) -> None:
        """If the operator is gone, another one begins."""
        if self.has_crashed:
            await self.stop()
            await self._stage.clock.advance(RESTART_SECONDS)
            blind = max(0.0, self.view.stale_until - self._stage.clock.now())
            self.deaths.append(Death(self.transports[-1].crashed_at, self._stage.clock.wall() + blind))
            self.start()
        elif self.task is not None and self.task.done():
            self._stage.problems.append(f"the operator {self.name} ended: {self.task.exception()!r}")
            self.start()

    @property
    def writes(self) -> list[Request]:
        return [request for transport in self.transports for request in transport.asked if is_counted(request)]


class Stage:
    """`async with`. `rules` are those of the first operator."""

    def __init__(
        self, *, seed: int = 0, operators: int = 1, elects: bool = False, rate: float = 1.0, skew: float = 0.0
    ) -> None:
        self.clock = VirtualClock()
        self.elects = elects
        self.changes: list[Change] = []
        self.problems: list[str] = []
        self.wants_server_restart = False
        self.in_process: list[InProcessTransport] = []
        self.namespace = "ns"
        self._seed = seed
        self._operators = operators
        self._rate, self._skew = rate, skew
        self.replicas: list[Replica] = []
        self.records = _Records()

    async def begin(self, without: tuple[str, ...], rules: list[Rule]) -> None:
        random.seed(self._seed)
        self.server = await VirtualServer(clock=self.clock, without=without).__aenter__()
        self.server.server.state.listeners.append(self._record)
        self.cast = Cast(self.server)
        clock: Clock = self.clock
        if self._rate != 1.0 or self._skew:
            clock = OwnClock(self.clock, self._rate, self._skew)
        names = ("one", "two")[: self._operators]
        self.replicas = [Replica(self, name, rules if index == 0 else [], clock) for index, name in enumerate(names)]
        self.records.attach()

    async def __aenter__(self) -> Stage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.records.detach()
        for replica in self.replicas:
            await replica.stop()
        await self.server.__aexit__(kind, error, trace)

    async def start_operators(self) -> None:
        for replica in self.replicas:
            replica.start()
            await self.clock.advance(0.2)
        await self.clock.advance(0.3)

    # Time

    async def step(self, seconds: float = STEP_SECONDS) -> None:
        await self.clock.advance(seconds)
        if self.wants_server_restart:
            self.wants_server_restart = False
            await self.restart_server()
        for replica in self.replicas:
            await replica.look()
        await self.cast.play()
        await self.clock.settle()

    async def wait(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            await self.step(min(STEP_SECONDS, max(end - self.clock.now(), 0.001)))

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        end = self.clock.now() + LONGEST
        while not holds():
            if self.clock.now() > end:
                raise NeverHappened(what)
            await self.step()

    async def until_quiet(self, seconds: float = 130.0) -> None:
        """Until nothing has changed, and nobody has written, for so long."""
        end = self.clock.now() + LONGEST_UNQUIET
        quiet_since, seen = self.clock.now(), self._activity()
        while self.clock.now() - quiet_since < seconds:
            if self.clock.now() > end:
                raise NeverHappened("quiet")
            await self.step(2.0)
            if self._activity() != seen:
                quiet_since, seen = self.clock.now(), self._activity()

    def _activity(self) -> tuple[int, int]:
        return len(self.changes), sum(len(replica.writes) for replica in self.replicas)

    async def restart_server(self) -> None:
        await self.server.restart()
        self.server.server.state.listeners.append(self._record)
        for transport in self.in_process:
            transport.server = self.server.server

    def _record(self, event: Event) -> None:
        kind = KINDS.get(event.current.key.resource)
        if kind is None:
            return
        served = {"apiVersion": "", "kind": kind, **event.current.decode()}
        self.changes.append(Change(event.type, kind, event.version, served, self.clock.wall()))


def is_counted(request: Request) -> bool:
    """A write that matters: no event, no lease, no question."""
    if not request.is_write or "/leases" in request.path or "/events" in request.path:
        return False
    return not any(name == "dryRun" for name, _ in request.query)


class _Records(logging.Handler):
    """What is logged by us: a traceback is a problem, and so is a conflict that is more than a detail."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.problems: list[str] = []
        self._logger = logging.getLogger("trainwright")

    def attach(self) -> None:
        self._logger.addHandler(self)

    def detach(self) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None and record.levelno >= logging.ERROR:
            self.problems.append(f"a traceback is logged: {text}")
        if record.levelno > logging.INFO and ("409" in text or "the object has been modified" in text):
            self.problems.append(f"a conflict is logged as {record.levelname}: {text}")
