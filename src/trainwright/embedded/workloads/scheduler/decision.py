"""Decides what the scheduler does next: a pure function of waiting pods, nodes, pods on them, pod groups and the time.

In: everything that is there. Out: a `Plan`: bindings, evictions, refusals, and why each other pod waits. The queue
goes by priority, then by age. A single pod that does not fit lets others pass, as in kube-scheduler. A gang is placed
whole or not at all; one that would fit on the empty nodes holds its place in the queue until its timeout, so that no
stream of smaller pods keeps it out for ever. One that can never fit says so at once and holds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler import fit, gangs, placing
from trainwright.embedded.workloads.scheduler.cluster import Amounts, Cluster, priority, requests
from trainwright.embedded.workloads.scheduler.gangs import GroupKey, Unit
from trainwright.embedded.workloads.scheduler.placing import Tried
from trainwright.schema.quantity import Quantity

GATED = "Scheduling is blocked due to non-empty scheduling gates"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
CLAIMS = "no new claims to deallocate, "


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a pod waits."""

    pod: ApiObject
    reason: str
    message: str
    nominated: str = ""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that makes room for another one, or for a gang."""

    victim: ApiObject
    preemptor: ApiObject


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that asks for more than this machine will ever have."""

    pod: ApiObject
    resource: str
    message: str


@dataclass(frozen=True, slots=True)
class GroupNews:
    """Whether a gang has started, or why it has not."""

    scheduled: bool
    message: str = ""


@dataclass(slots=True)
class Plan:
    bind: list[tuple[ApiObject, str]] = field(default_factory=list)
    evict: list[Eviction] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    refuse: list[Refusal] = field(default_factory=list)
    groups: dict[GroupKey, GroupNews] = field(default_factory=dict)
    after: float | None = None


def decide(
    waiting: Iterable[ApiObject],
    cluster: Cluster,
    groups: Mapping[GroupKey, ApiObject] | None = None,
    now: float = 0.0,
    *,
    started: Mapping[GroupKey, int] | None = None,
) -> Plan:
    """The next step for all waiting pods. The cluster is changed: what is bound is on its nodes afterwards.

    `started`: how many pods of a group have a node or have succeeded; by default those on the cluster's nodes.
    """
    if started is None:
        started = Counter(key for _, pod in cluster.pods() if (key := gangs.group_of(pod)) is not None)
    return _Step(cluster, groups or {}, now, started).decide(list(waiting))


class _Step:
    def __init__(
        self, cluster: Cluster, groups: Mapping[GroupKey, ApiObject], now: float, started: Mapping[GroupKey, int]
    ) -> None:
        self.cluster = cluster
        self.started = started
        self.groups = groups
        self.now = now
        self.plan = Plan()
        self.first: Unit | None = None  # the gang that holds its place in the queue

    def decide(self, waiting: list[ApiObject]) -> Plan:
        ready = []
        for pod in waiting:
            if pod.spec.get("schedulingGates"):
                self.plan.waiting.append(Waiting(pod, "SchedulingGated", GATED))
            else:
                ready.append(pod)
        queue, homeless = gangs.units(ready, self.started, self.groups)
        for pod in homeless:
            self._wait(pod, _without_group(gangs.group_of(pod)))
        for unit in queue:
            if self.first is not None and unit.priority <= self.first.priority:
                for pod in unit.pods:
                    self._wait(pod, f"waits behind gang {self.first.group}, which is before it in the queue")
            elif unit.minimum > 1:
                self._place_gang(unit)
            else:
                self._place_pod(unit.pods[0])
        return self.plan

    def _wait(self, pod: ApiObject, message: str, nominated: str = "") -> None:
        self.plan.waiting.append(Waiting(pod, "Unschedulable", message, nominated))

    def _place_pod(self, pod: ApiObject) -> None:
        asked = requests(pod)
        tried = placing.place(pod, self.cluster, asked)
        if tried.node is not None:
            tried.node.add(pod, asked)
            self.plan.bind.append((pod, tried.node.name))
            return
        if (short := fit.never(asked, self.cluster.nodes.values())) is not None:
            self.plan.refuse.append(Refusal(pod, *short))
            return
        nominated = str(pod.status.get("nominatedNodeName", ""))
        if self._victims_are_going(pod, nominated):
            note = "preemption: not eligible due to a terminating pod on the nominated node."
        else:
            nominated, note = self._preempt(pod, tried)
        found = (tried.against.get(name) for name in self.cluster.nodes)
        self._wait(pod, fit.message(len(self.cluster.nodes), found, preemption=note), nominated)
        if nominated in self.cluster.nodes:  # room that becomes free there is for this pod
            self.cluster.nodes[nominated].add(pod, asked)

    def _victims_are_going(self, pod: ApiObject, nominated: str) -> bool:
        state = self.cluster.nodes.get(nominated)
        return state is not None and any(
            other.is_being_deleted and priority(other) < priority(pod) for other in state.pods.values()
        )

    def _preempt(self, pod: ApiObject, tried: Tried) -> tuple[str, str]:
        """Evicts for the pod where that helps. Out: the nominated node, and what the message says."""
        if pod.spec.get("preemptionPolicy") == "Never":
            return "", f"{CLAIMS}preemption: not eligible due to preemptionPolicy=Never."
        choice = placing.victims_for(pod, self.cluster, tried)
        if choice is not None:
            node, victims = choice
            self._evict(victims, pod)
            return node, ""
        counts = {NOT_HELPFUL: 0, NO_VICTIMS: 0}
        for found in tried.against.values():
            counts[NOT_HELPFUL if found.lasting else NO_VICTIMS] += 1
        told = ", ".join(sorted(f"{count} {text}" for text, count in counts.items() if count))
        return "", f"{CLAIMS}preemption: 0/{len(tried.against)} nodes are available: {told}." if told else ""

    def _place_gang(self, unit: Unit) -> None:
        if not unit.is_complete:
            for pod in unit.pods:
                self._wait(pod, _too_few(unit, pod))
            return
        needed = max(unit.minimum - unit.running, 0)
        trial = self.cluster.copy()
        placed, left = placing.place_all(unit.pods, trial)
        if len(placed) >= needed:
            self.cluster.nodes = trial.nodes
            self.plan.bind += placed
            if unit.group is not None:
                self.plan.groups[unit.group] = GroupNews(scheduled=True)
            for pod in unit.pods:
                if pod.metadata.uid in left:
                    self._wait(pod, self._reasons(left[pod.metadata.uid]))
            return
        never = [fit.never(requests(pod), self.cluster.nodes.values()) for pod in unit.pods]
        if any(never):
            refused = [(pod, short) for pod, short in zip(unit.pods, never, strict=True) if short is not None]
            self.plan.refuse += [Refusal(pod, *short) for pod, short in refused]
        else:
            self._refuse_gang(unit, needed, len(placed), left)

    def _refuse_gang(self, unit: Unit, needed: int, placed: int, left: dict[str, Tried]) -> None:
        tried = next(iter(left.values()))
        empty, _ = placing.place_all(unit.pods, self.cluster.emptied())
        if len(empty) < unit.minimum - unit.running:
            told = f"gang {unit.group} can never fit: {self._shortage(unit, len(empty))}"
        else:
            told = f"gang {unit.group} waits as a whole: {placed} of the {needed} pods that it needs at once would fit."
            told = f"{told} {self._reasons(tried)}"
            if makes_room := self._makes_room_for(unit, needed):
                told = f"{told} Pods of lower priority are evicted for it."
            left_over = unit.waits_since() + unit.timeout - self.now if unit.timeout is not None else None
            if makes_room or left_over is None or left_over > 0:
                self.first = unit  # room that is made for it is for nobody of lower priority, timeout or not
            if left_over is not None and left_over > 0:
                self.plan.after = min(self.plan.after or left_over, left_over)
        if unit.group is not None:
            self.plan.groups[unit.group] = GroupNews(scheduled=False, message=told)
        for pod in unit.pods:
            self._wait(pod, told)

    def _makes_room_for(self, unit: Unit, needed: int) -> bool:
        """Evicts for a gang where that helps. Whether pods are going, now or already."""
        if any(pod.spec.get("preemptionPolicy") == "Never" for pod in unit.pods):
            return False
        if any(other.is_being_deleted and priority(other) < unit.priority for _, other in self.cluster.pods()):
            return True  # room is being made already
        victims = placing.victims_for_gang(unit.pods, needed, unit.priority, self.cluster)
        if not victims:
            return False
        self._evict(victims, unit.pods[0])
        return True

    def _evict(self, victims: list[ApiObject], preemptor: ApiObject) -> None:
        """Evicts pods, and with a member of a gang that cannot go on without it the whole gang. Until they have ended
        they take their room, so nobody else is placed there.
        """
        evicted = {eviction.victim.metadata.uid for eviction in self.plan.evict}
        for victim in victims:
            key = gangs.group_of(victim)
            together = [victim]
            if key is not None and key in self.groups:
                members = [pod for _, pod in self.cluster.pods() if gangs.group_of(pod) == key]
                if len(members) - 1 < gangs.minimum(key, self.groups[key]):
                    together = members
            for pod in together:
                if pod.metadata.uid not in evicted:
                    evicted.add(pod.metadata.uid)
                    self.plan.evict.append(Eviction(pod, preemptor))

    def _reasons(self, tried: Tried) -> str:
        found = (tried.against.get(name) for name in self.cluster.nodes)
        return fit.message(len(self.cluster.nodes), found)

    def _shortage(self, unit: Unit, fitting: int) -> str:
        """What is missing on the empty nodes, and what would make the gang fit."""
        asked: Amounts = {}
        for pod in unit.pods:
            for name, amount in requests(pod).items():
                asked[name] = asked.get(name, 0) + amount
        there: Amounts = {}
        for state in self.cluster.nodes.values():
            for name, amount in state.allocatable.items():
                there[name] = there.get(name, 0) + amount
        short = [name for name, amount in asked.items() if amount > there.get(name, 0)]
        if short:
            lacking = ", ".join(
                f"{name} {Quantity(asked[name])} in all where the nodes have {Quantity(there.get(name, 0))}"
                for name in short
            )
            return f"its {len(unit.pods)} pods ask for {lacking}. Ask for less or for fewer pods, or add nodes"
        tried = placing.place_all(unit.pods, self.cluster.emptied())[1]
        reasons = self._reasons(next(iter(tried.values())))
        return (
            f"even on empty nodes only {fitting} of its {len(unit.pods)} pods fit. {reasons} Smaller pods, larger"
            " nodes or other constraints would make it fit"
        )


def _without_group(key: GroupKey | None) -> str:
    name = key.name if key is not None else ""
    if key is not None and key.kind == gangs.NATIVE:
        return f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'  # kube-scheduler's words
    return f'waiting for pod group "{name}" to be created'


def _too_few(unit: Unit, pod: ApiObject) -> str:
    if unit.group is not None and unit.group.kind == gangs.NATIVE:
        return "waiting for minCount pods from a gang to appear in scheduling queue"
    number = unit.running + len(unit.pods)
    text = f"pre-filter pod {pod.name} cannot find enough sibling pods, current pods number: {number}"
    return f"{text}, minMember of group: {unit.minimum}"
