"""Who goes where, who waits and why: gangs whole or not at all, priorities, neighbours, several nodes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api.metadata import ObjectMeta
from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler.cluster import Cluster, NodeState, requests
from trainwright.embedded.workloads.scheduler.decision import Plan, decide
from trainwright.embedded.workloads.scheduler.gangs import COSCHEDULING, NATIVE, VOLCANO, GroupKey, group_of
from unit.embedded.workloads.making import NOW

_numbers = itertools.count()


def node(name: str = "n0", cpu: str = "4", **labels: str) -> ApiObject:
    metadata = ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **labels})
    room = {"cpu": cpu, "memory": "64Gi", "pods": "2000"}
    return ApiObject(metadata, {}, {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]})


def pod(
    name: str,
    cpu: str = "1",
    *,
    gang: str | None = None,
    at: float = NOW,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> ApiObject:
    marks = {**(labels or {}), **({"scheduling.x-k8s.io/pod-group": gang} if gang else {})}
    metadata = ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", labels=marks, creation_timestamp=rfc3339(at))
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    scheduler = {"schedulerName": "scheduler-plugins-scheduler"} if gang else {}
    return ApiObject(metadata, {"containers": [container], **scheduler, **spec}, {"phase": "Pending"})


def group(name: str, minimum: int, at: float = NOW, **spec: Any) -> tuple[GroupKey, ApiObject]:
    metadata = ObjectMeta(name=name, namespace="ns", creation_timestamp=rfc3339(at))
    return GroupKey(COSCHEDULING, "ns", name), ApiObject(metadata, {"minMember": minimum, **spec}, {})


def members(name: str, count: int, cpu: str = "1", at: float = NOW, **spec: Any) -> list[ApiObject]:
    return [pod(f"{name}-{index}", cpu, gang=name, at=at, **spec) for index in range(count)]


def bound(plan: Plan) -> list[str]:
    return [pod.name for pod, _ in plan.bind]


def why(plan: Plan) -> dict[str, str]:
    return {waiting.pod.name: waiting.message for waiting in plan.waiting}


def test_a_gang_starts_whole_or_not_at_all() -> None:
    groups = dict([group("a", 4)])
    plan = decide(members("a", 4, "2"), Cluster.of([node(cpu="4"), node("n1", cpu="4")], []), groups, NOW)
    assert sorted(bound(plan)) == ["a-0", "a-1", "a-2", "a-3"]
    busy = pod("busy", "1")
    plan = decide(members("a", 4, "2"), Cluster.of([node(), node("n1")], [("n0", busy)]), groups, NOW)
    assert bound(plan) == []
    assert why(plan)["a-0"] == (
        "gang ns/a waits as a whole: 3 of the 4 pods that it needs at once would fit."
        " 0/2 nodes are available: 2 Insufficient cpu."
    )


def test_a_gang_waits_until_all_its_pods_are_there() -> None:
    plan = decide(members("a", 3), Cluster.of([node()], []), dict([group("a", 4)]), NOW)
    assert bound(plan) == []
    assert why(plan)["a-1"] == (
        "pre-filter pod a-1 cannot find enough sibling pods, current pods number: 3, minMember of group: 4"
    )


def test_a_gang_that_can_never_fit_says_so_at_once_and_what_would_make_it_fit() -> None:
    small = pod("small", "1", at=NOW + 1)
    plan = decide([*members("a", 4, "2"), small], Cluster.of([node()], []), dict([group("a", 4)]), NOW)
    assert bound(plan) == ["small"]
    assert why(plan)["a-0"] == (
        "gang ns/a can never fit: its 4 pods ask for cpu 8 in all where the nodes have 4. Ask for less or for fewer"
        " pods, or add nodes"
    )
    plan = decide(members("a", 2, "3"), Cluster.of([node(), node("n1", "2")], []), dict([group("a", 2)]), NOW)
    assert "even on empty nodes only 1 of its 2 pods fit" in why(plan)["a-0"]


def test_two_gangs_that_each_need_the_whole_machine_run_one_after_the_other() -> None:
    groups = dict([group("a", 4), group("b", 4, NOW + 1)])
    first, second = members("a", 4), members("b", 4, at=NOW + 1)
    order, halves = run([*first, *second], [node()], groups)
    assert order == [f"a-{n}" for n in range(4)] + [f"b-{n}" for n in range(4)]
    assert halves == []


def test_gangs_and_small_jobs_start_in_the_order_of_priority_and_queue() -> None:
    groups = dict([group("a", 4), group("b", 2, NOW + 1), group("urgent", 3, NOW + 4)])
    pods = [
        *members("a", 4),
        *members("b", 2, at=NOW + 1),
        pod("small-1", at=NOW + 2),
        pod("small-2", at=NOW + 3),
        *members("urgent", 3, at=NOW + 4, priority=10),
    ]
    order, halves = run(pods, [node()], groups)
    assert [name.partition("-")[0] for name in order] == ["urgent"] * 3 + ["a"] * 4 + ["b"] * 2 + ["small"] * 2
    assert halves == []


def test_a_gang_lets_others_pass_after_its_timeout() -> None:
    groups = dict([group("a", 4, scheduleTimeoutSeconds=60)])
    busy, small = ("n0", pod("busy", "2")), pod("small", at=NOW + 1)
    early = decide([*members("a", 4), small], Cluster.of([node()], [busy]), groups, NOW + 10)
    assert (bound(early), early.after) == ([], 50.0)
    assert why(early)["small"] == "waits behind gang ns/a, which is before it in the queue"
    assert bound(decide([*members("a", 4), small], Cluster.of([node()], [busy]), groups, NOW + 61)) == ["small"]


@pytest.mark.parametrize("kind", [VOLCANO, NATIVE])
def test_volcanos_and_kubernetes_own_groups_are_gangs_too(kind: str) -> None:
    metadata = ObjectMeta(name="g", namespace="ns")
    gang = {"minMember": 2} if kind == VOLCANO else {"schedulingPolicy": {"gang": {"minCount": 2}}}
    own: dict[str, Any] = (
        {"schedulerName": "volcano"} if kind == VOLCANO else {"schedulingGroup": {"podGroupName": "g"}}
    )
    marks = {"scheduling.k8s.io/group-name": "g"} if kind == VOLCANO else {}
    pods = [
        ApiObject(
            ObjectMeta(name=name, namespace="ns", uid=name, annotations=marks),
            {"containers": [{"resources": {"requests": {"cpu": "3"}}}], **own},
        )
        for name in "ab"
    ]
    groups = {GroupKey(kind, "ns", "g"): ApiObject(metadata, gang)}
    assert bound(decide(pods, Cluster.of([node(), node("n1")], []), groups, NOW)) == ["a", "b"]
    assert bound(decide(pods, Cluster.of([node()], []), groups, NOW)) == []


def test_a_pod_of_higher_priority_evicts_the_least_that_makes_room() -> None:
    there = [("n0", pod("low", "2", priority=1)), ("n0", pod("lower", "2")), ("n1", pod("equal", "4", priority=5))]
    plan = decide([pod("p", "2", priority=5)], Cluster.of([node(), node("n1")], there), {}, NOW)
    assert [eviction.victim.name for eviction in plan.evict] == ["lower"]
    assert plan.waiting[0].nominated == "n0"
    polite = pod("p", "2", priority=5, preemptionPolicy="Never")
    assert decide([polite], Cluster.of([node(), node("n1")], there), {}, NOW).evict == []


def test_a_gang_of_higher_priority_evicts_only_if_that_lets_it_start() -> None:
    there = [("n0", pod("low", "3", priority=1)), ("n1", pod("equal", "3", priority=5))]
    groups = dict([group("a", 2)])
    plan = decide(members("a", 2, "2", priority=5), Cluster.of([node(), node("n1")], there), groups, NOW)
    assert [eviction.victim.name for eviction in plan.evict] == ["low"]
    plan = decide(members("a", 2, "4", priority=5), Cluster.of([node(), node("n1")], there), groups, NOW)
    assert plan.evict == []


def test_room_that_is_made_for_a_gang_is_for_nobody_of_lower_priority_even_after_its_timeout() -> None:
    groups = dict([group("a", 4, scheduleTimeoutSeconds=30)])
    there = [("n0", pod("low-0", "1")), ("n0", pod("low-1", "1"))]
    waiting = [*members("a", 4, priority=1), pod("low-2", "1", at=NOW + 1)]
    plan = decide(waiting, Cluster.of([node()], there), groups, NOW + 60)
    assert {eviction.victim.name for eviction in plan.evict} == {"low-0", "low-1"}
    assert bound(plan) == [], "low-2 would take room that the gang has just been given"


def test_a_gang_is_evicted_whole() -> None:
    there = [("n0", members("low", 2, "2")[0]), ("n1", members("low", 2, "2")[1])]
    plan = decide([pod("p", "3", priority=5)], Cluster.of([node(), node("n1")], there), dict([group("low", 2)]), NOW)
    assert sorted(eviction.victim.name for eviction in plan.evict) == ["low-0", "low-1"]


def test_messages_say_what_preemption_would_do() -> None:
    plan = decide([pod("p", "3"), pod("q", "9")], Cluster.of([node()], [("n0", pod("other", "2"))]), {}, NOW)
    assert why(plan)["p"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available:"
        " 1 No preemption victims found for incoming pod."
    )
    assert why(plan)["q"].endswith("1 Preemption is not helpful for scheduling.")


def affinity(kind: str, key: str = "zone", **labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_pods_stay_together_and_apart_by_zone() -> None:
    zones = [node("n0", zone="a"), node("n1", zone="b"), node("n2")]
    leader = [("n1", pod("leader", labels={"app": "x"}))]
    plan = decide([pod("near", **affinity("podAffinity", app="x"))], Cluster.of(zones, leader), {}, NOW)
    assert plan.bind[0][1] == "n1"
    plan = decide([pod("away", **affinity("podAntiAffinity", app="x"))], Cluster.of(zones[:2], leader), {}, NOW)
    assert plan.bind[0][1] == "n0"
    first = pod("first", labels={"app": "y"}, **affinity("podAffinity", app="y"))
    assert bound(decide([first], Cluster.of(zones, []), {}, NOW)) == ["first"]
    alone = pod("alone", **affinity("podAffinity", app="nobody"))
    assert why(decide([alone], Cluster.of(zones, []), {}, NOW))["alone"].startswith(
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
    )
    hermit = [("n0", pod("hermit", **affinity("podAntiAffinity", app="x")))]
    plan = decide([pod("x", labels={"app": "x"})], Cluster.of(zones[:1], hermit), {}, NOW)
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in why(plan)["x"]


def test_pods_spread_over_zones() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    pods = [
        pod(f"p{index}", "100m", labels={"app": "x"}, at=NOW + index, topologySpreadConstraints=[constraint])
        for index in range(6)
    ]
    zones = [node("n0", zone="a"), node("n1", zone="b"), node("n2")]
    plan = decide(pods, Cluster.of(zones, []), {}, NOW)
    assert sorted(where for _, where in plan.bind) == ["n0"] * 3 + ["n1"] * 3


def test_a_gated_pod_is_not_looked_at() -> None:
    plan = decide([pod("p", schedulingGates=[{"name": "g"}])], Cluster.of([node()], []), {}, NOW)
    assert plan.waiting[0].reason == "SchedulingGated"


def test_a_thousand_pods_take_little_time() -> None:
    nodes = [node(f"n{index}", "64") for index in range(10)]
    pods = [pod(f"p{index:04}", "500m", at=NOW + index) for index in range(1000)]
    began = time.process_time()
    plan = decide(pods, Cluster.of(nodes, []), {}, NOW)
    assert len(plan.bind) == 1000
    assert time.process_time() - began < 5.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["1", "2", "500m"]), st.integers(0, 2), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.sampled_from(["2", "4"]), min_size=1, max_size=3),
)
def test_whatever_arrives_everything_that_can_run_does_and_no_gang_starts_by_half(
    arrivals: list[tuple[int, str, int, bool]], sizes: list[str]
) -> None:
    nodes = [node(f"n{index}", size) for index, size in enumerate(sizes)]
    groups: dict[GroupKey, ApiObject] = {}
    pods: list[ApiObject] = []
    for number, (count, cpu, rank, is_gang) in enumerate(arrivals):
        at = NOW + number
        if is_gang:
            groups.update([group(f"g{number}", count, at)])
            pods += members(f"g{number}", count, cpu, at, priority=rank)
        else:
            pods += [pod(f"s{number}-{index}", cpu, at=at, priority=rank) for index in range(count)]
    order, halves = run(pods, nodes, groups)
    assert halves == []
    never = set(why(decide([p for p in pods if p.name not in order], Cluster.of(nodes, []), groups, NOW)))
    assert never == {p.name for p in pods} - set(order)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_order_of_arrivals_ends_in_a_deadlock(data: st.DataObject) -> None:
    """Pods of several gangs and single ones arrive one by one, mixed, while others run and end: each that fits on the
    empty nodes gets its turn, with and without timeouts, whatever came first.
    """
    sizes = data.draw(st.lists(st.sampled_from(["2", "4"]), min_size=1, max_size=3))
    nodes = [node(f"n{index}", size) for index, size in enumerate(sizes)]
    groups: dict[GroupKey, ApiObject] = {}
    pods: list[ApiObject] = []
    for number in range(data.draw(st.integers(1, 6))):
        count, cpu = data.draw(st.integers(1, 5)), data.draw(st.sampled_from(["1", "2", "500m"]))
        rank, timeout = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([None, 30]))
        if data.draw(st.booleans()):
            limits = {} if timeout is None else {"scheduleTimeoutSeconds": timeout}
            groups.update([group(f"g{number}", count, NOW + number, **limits)])
            pods += members(f"g{number}", count, cpu, NOW + number, priority=rank)
        else:
            pods += [pod(f"s{number}-{index}", cpu, at=NOW + number, priority=rank) for index in range(count)]
    arriving = data.draw(st.permutations(pods))
    order, halves = run((), nodes, groups, arriving=arriving, at_once=data.draw(st.integers(1, 4)))
    assert halves == []
    left = [p for p in pods if p.name not in order]
    alone = {p.name for p in left if fits_on_empty_nodes(p, left, nodes, groups)}
    assert alone == set(), "these would fit, and never got their turn"


def fits_on_empty_nodes(
    one: ApiObject, pods: list[ApiObject], nodes: list[ApiObject], groups: dict[GroupKey, ApiObject]
) -> bool:
    key = group_of(one)
    unit = [p for p in pods if p is one or (key is not None and group_of(p) == key)]
    return one.name in bound(decide(unit, Cluster.of(nodes, []), groups, NOW))


def run(
    pods: Iterable[ApiObject],
    nodes: list[ApiObject],
    groups: dict[GroupKey, ApiObject],
    *,
    arriving: Sequence[ApiObject] = (),
    at_once: int = 1,
) -> tuple[list[str], list[str]]:
    """Plays until nothing moves: the unit that started first ends first, and evicted pods wait again. `at_once` of the
    `arriving` come before each turn. Out: the names in the order of their last start, and gangs seen half-started.
    """
    waiting = {pod.name: pod for pod in pods}
    running: dict[str, tuple[str, ApiObject]] = {}
    order: list[str] = []
    halves: list[str] = []
    for turn in range(500):
        waiting |= {pod.name: pod for pod in arriving[turn * at_once : (turn + 1) * at_once]}
        plan = decide(waiting.values(), Cluster.of(nodes, running.values()), groups, NOW + 5 * turn * bool(arriving))
        for eviction in plan.evict:
            name = eviction.victim.name
            waiting[name] = running.pop(name)[1]
            order.remove(name)
        for pod, where in plan.bind:
            running[pod.name] = (where, waiting.pop(pod.name))
            order.append(pod.name)
        waits = {group_of(pod) for pod in waiting.values()}
        halves += [str(key) for _, pod in running.values() if (key := group_of(pod)) is not None and key in waits]
        assert_nothing_is_full(nodes, running.values())
        if not plan.bind and not plan.evict:
            if not running:
                if (turn + 1) * at_once < len(arriving):
                    continue
                return order, halves
            name, (_, done) = next(iter(running.items()))
            key = group_of(done)
            for other in [n for n, (_, p) in running.items() if n == name or (key and group_of(p) == key)]:
                del running[other]
    raise AssertionError("it never ends")


def assert_nothing_is_full(nodes: list[ApiObject], running: Iterable[tuple[str, ApiObject]]) -> None:
    states = {each.name: NodeState(each) for each in nodes}
    for where, pod in running:
        states[where].add(pod, requests(pod))
    assert all(amount >= 0 for state in states.values() for amount in state.free.values())
