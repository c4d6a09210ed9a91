"""The cluster as a decision sees it: nodes with the pods on them and the room that is left. No I/O.

Amounts are whole billionths, so that a thousand pods are added up in no time. A `Cluster` can be copied to try
something out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import QuantityError, parse_quantity

Amounts = dict[str, int]
ONE = 10**9


@lru_cache(maxsize=4096)
def _nano(text: str | int | float) -> int:
    try:
        return parse_quantity(text).nano
    except QuantityError:
        return 0


def amounts(found: Mapping[str, str | int | float] | None) -> Amounts:
    return {name: _nano(amount) for name, amount in (found or {}).items()}


def requests(pod: ApiObject) -> Amounts:
    """The pod's requests: the sum of its containers or, if larger, the largest init container with the sidecars before
    it; plus overhead. A limit without a request counts as a request.
    """
    total: Amounts = {}
    for container in pod.spec.get("containers") or ():
        _add(total, _asked(container))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in pod.spec.get("initContainers") or ():
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            asked = dict(sidecars)
        else:
            asked = {name: asked.get(name, 0) + sidecars.get(name, 0) for name in {*asked, *sidecars}}
        for name, amount in asked.items():
            largest[name] = max(largest.get(name, 0), amount)
    _add(total, sidecars)
    for name, amount in largest.items():
        total[name] = max(total.get(name, 0), amount)
    _add(total, amounts(pod.spec.get("overhead")))
    total["pods"] = ONE
    return total


def _asked(container: Json) -> Amounts:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def priority(pod: ApiObject) -> int:
    return int(pod.spec.get("priority", 0))


class NodeState:
    """A node, the pods on it and what it has left."""

    __slots__ = ("allocatable", "free", "node", "pods", "usable")

    def __init__(self, node: ApiObject, pods: Iterable[ApiObject] = ()) -> None:
        self.node = node
        self.allocatable = amounts(node.status.get("allocatable"))
        self.free = dict(self.allocatable)
        self.pods: dict[str, ApiObject] = {}
        self.usable = node.is_true("Ready")
        for pod in pods:
            self.add(pod)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels or {}

    def copy(self) -> NodeState:
        new = NodeState.__new__(NodeState)
        new.node, new.allocatable, new.usable = self.node, self.allocatable, self.usable
        new.free, new.pods = dict(self.free), dict(self.pods)
        return new

    def add(self, pod: ApiObject, asked: Amounts | None = None) -> None:
        self.pods[pod.metadata.uid] = pod
        for name, amount in (asked if asked is not None else requests(pod)).items():
            self.free[name] = self.free.get(name, 0) - amount

    def remove(self, pod: ApiObject) -> None:
        if self.pods.pop(pod.metadata.uid, None) is not None:
            for name, amount in requests(pod).items():
                self.free[name] = self.free.get(name, 0) + amount


class Cluster:
    """All nodes, by name."""

    def __init__(self, states: Iterable[NodeState], namespaces: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.nodes = {state.name: state for state in states}
        self.namespaces = namespaces or {}

    @classmethod
    def of(
        cls,
        nodes: Iterable[ApiObject],
        bound: Iterable[tuple[str, ApiObject]],
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Cluster:
        """Nodes, and pods with the names of their nodes."""
        cluster = cls((NodeState(node) for node in sorted(nodes, key=lambda node: node.name)), namespaces)
        for name, pod in bound:
            if name in cluster.nodes:
                cluster.nodes[name].add(pod)
        return cluster

    def copy(self) -> Cluster:
        return Cluster((state.copy() for state in self.nodes.values()), self.namespaces)

    def emptied(self) -> Cluster:
        """The same nodes with no pods on them."""
        return Cluster((NodeState(state.node) for state in self.nodes.values()), self.namespaces)

    def pods(self) -> Iterable[tuple[NodeState, ApiObject]]:
        return ((state, pod) for state in self.nodes.values() for pod in state.pods.values())
