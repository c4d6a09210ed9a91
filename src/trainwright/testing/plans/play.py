"""Plays a plan: its workload on a stage, with its faults, to the end and until all is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trainwright.api.resources import NAMESPACES
from trainwright.client.requests import Request
from trainwright.schema.jsonobject import Json
from trainwright.testing import audit, clientaudit, faults, oracle
from trainwright.testing.endstate import masked
from trainwright.testing.faults import Rule
from trainwright.testing.plans import rules
from trainwright.testing.plans.plan import Fault, Plan
from trainwright.testing.plans.stage import NeverHappened, Stage, is_counted
from trainwright.testing.plans.window import Loss, losses
from trainwright.testing.plans.workloads import WORKLOADS, Player
from trainwright.testing.watchlog import live

QUIET_SECONDS = 60.0
NEWS_SECONDS = 3.0


@dataclass
class Ending:
    """What is left of a run."""

    state: dict[str, Json] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    writes: list[str] = field(default_factory=list)
    reads: int = 0
    hits: int = 0
    seconds: float = 0.0
    """From the first request to the workload's end."""
    problems: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    """What was lost in the known window. The workloads that took their places are in neither state nor counts."""


async def play(plan: Plan) -> Ending:
    """Raises nothing that the operator causes: that is a problem of the ending."""
    workload = WORKLOADS[plan.workload]
    injected = _Faults(plan)
    stage = Stage(
        seed=plan.seed,
        operators=2 if plan.of("two", "frozen") else 1,
        elects=bool(plan.of("frozen")),
        rate=next((fault.number for fault in plan.of("rate")), 1.0),
        skew=next((fault.number for fault in plan.of("skew")), 0.001 if plan.of("jump") else 0.0),
    )
    await stage.begin(workload.without, injected.rules)
    async with stage:
        injected.attach(stage)
        player = Player(stage)
        await player.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
        await stage.start_operators()
        ending = Ending()
        begun = stage.clock.now()
        try:
            await workload.play(player)
            ending.seconds = stage.clock.now() - begun
            ending.reads = _reads(stage)  # later ones are repetitions
            await stage.until_quiet()
            written = _counted(stage)
            await stage.wait(QUIET_SECONDS)
            late = _counted(stage)[len(written) :]
            ending.problems += [f"written although all was quiet: {line}" for line in late]
        except NeverHappened as error:
            ending.problems.append(f"never happened: {error}")
        _finish(stage, plan, ending)
        ending.hits = injected.hits
    return ending


def _finish(stage: Stage, plan: Plan, ending: Ending) -> None:
    changes = stage.changes
    if len(stage.replicas) == 1:
        ending.losses = list(losses(changes, stage.replicas[0].deaths))
    rebuilt = {loss.rebuilt.uid for loss in ending.losses}
    for change in live(changes).values():
        if change.uid in rebuilt:
            continue
        body = masked(change.object, change.kind, stage.namespace + "/never")
        if change.kind == "TrainJob" and WORKLOADS[plan.workload].ends_in_two_ways:
            body = {"spec": body["spec"]}
        ending.state[f"{change.kind}/{change.name}"] = body
    ending.counts = Counter(
        f"{change.type} {change.kind} {change.name}"
        for change in changes
        if change.type in ("ADDED", "DELETED")
        and change.uid not in rebuilt
        and (change.kind == "ControllerRevision" or oracle.owning_trainjob(change.object) is not None)
    )
    ending.writes = _counted(stage)
    ending.problems += stage.problems + stage.records.problems
    requests = audit.requests(_audit_events(stage))
    slow = sum(
        float(fault.pair[0] if fault.kind == "stale" else fault.pair[1] or fault.value)
        for fault in plan.of("lag", "delay", "hide", "stale", "late", "frozen")
    )
    story = oracle.Story(changes, requests, news_seconds=NEWS_SECONDS + slow)
    ending.problems += [str(found) for rule in oracle.RULES for found in rule(story)]
    ending.problems += rules.violations(changes, ending.losses)


def _reads(stage: Stage) -> int:
    return sum(_is_read(request) for replica in stage.replicas for it in replica.transports for request in it.asked)


def _counted(stage: Stage) -> list[str]:
    return [f"{request.method} {request.path}" for replica in stage.replicas for request in replica.writes]


def _audit_events(stage: Stage) -> Iterator[Json]:
    for replica in stage.replicas:
        for transport in replica.transports:
            for answered in transport.answered:
                if answered.request.is_write:
                    yield clientaudit.event_of(replica.name, answered)


def _is_read(request: Request) -> bool:
    return request.method == "GET" and not any(name == "watch" for name, _ in request.query)


class _Nth(Rule):
    """The nth request of a sort, and its repetitions: those of the same method and path."""

    def __init__(self, fault: faults.Fault | None, sort: Callable[[Request], bool], nth: int, times: int = 1) -> None:
        super().__init__(fault or faults.Delay(0.0), nth=nth, times=times)
        self._sort = sort
        self._target: tuple[str, str] | None = None
        self._left = times
        self.then: Callable[[], None] = _nothing
        self.count = 0

    def hits(self, request: Request) -> bool:
        if not self._sort(request):
            return False
        self.seen += 1
        if self.seen == self.nth:
            self._target = (request.method, request.path)
        if self._target != (request.method, request.path) or not self._left:
            return False
        self._left -= 1
        self.count += 1
        self.then()
        return True


def _nothing() -> None: ...


GARBLED = faults.Respond(502, body=b"<html><body>Bad Gateway</body></html>")
OF_WRITES: dict[str, Callable[[Fault], faults.Fault]] = {
    "lost": lambda fault: faults.DropBefore(),
    "unheard": lambda fault: faults.DropAfter(),
    "doubled": lambda fault: faults.Double(),
    "late": lambda fault: faults.Delay(fault.number),
    "refused": lambda fault: faults.Respond(int(fault.value), retry_after=1 if fault.value == "429" else None),
    "crash-before": lambda fault: faults.Crash(after=False),
    "crash-after": lambda fault: faults.Crash(after=True),
    "frozen": lambda fault: faults.Freeze(fault.number),
    "stale": lambda fault: faults.Crash(after=True),
}
OF_READS: dict[str, Callable[[Fault], faults.Fault]] = {
    "read-lost": lambda fault: faults.DropAfter(),
    "read-refused": lambda fault: faults.Respond(int(fault.value)),
    "read-garbled": lambda fault: GARBLED,
}
EVENTS = ("hide", "cut", "expire", "server", "jump", "stale")


class _Faults:
    """The faults of a plan as rules, and as what happens at a write."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: list[tuple[Fault, _Nth]] = []
        for fault in plan.faults:
            if fault.kind in OF_WRITES:
                self._made.append((fault, _Nth(OF_WRITES[fault.kind](fault), is_counted, fault.at, fault.times)))
            elif fault.kind in OF_READS:
                self._made.append((fault, _Nth(OF_READS[fault.kind](fault), _is_read, fault.at, fault.times)))
            elif fault.kind in EVENTS:
                self._made.append((fault, _Nth(None, is_counted, fault.at)))
        self.rules: list[Rule] = [rule for _, rule in self._made]

    @property
    def hits(self) -> int:
        return sum(rule.count for _, rule in self._made)

    def attach(self, stage: Stage) -> None:
        for replica in stage.replicas:
            view = replica.view
            view.lag = sum(fault.number for fault in self._plan.of("lag"))
            view.delays = {fault.pair[0]: float(fault.pair[1]) for fault in self._plan.of("delay")}
        for fault, rule in self._made:
            if fault.kind in EVENTS:
                rule.then = _happening(stage, fault)


def _happening(stage: Stage, fault: Fault) -> Callable[[], None]:
    replica = stage.replicas[0]

    def happen() -> None:
        if fault.kind == "hide":
            plural, seconds = fault.pair
            replica.view.hide(plural, float(seconds))
        elif fault.kind == "stale":
            seconds, back = fault.pair
            versions = sorted({change.version for change in stage.changes})
            replica.view.stale_until = stage.clock.now() + 1.0 + float(seconds)
            replica.view.stale_version = versions[max(0, len(versions) - 1 - int(back))] if versions else 1
        elif fault.kind in ("cut", "expire"):
            stage.clock.call_later(0.01, lambda: replica.view.break_streams(expired=fault.kind == "expire"))
        elif fault.kind == "jump":
            replica.clock.skew += fault.number  # type: ignore[attr-defined]
        elif fault.kind == "server":
            stage.wants_server_restart = True

    return happen
