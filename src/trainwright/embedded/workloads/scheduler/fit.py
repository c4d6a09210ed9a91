"""Whether a pod fits a node by itself, and if not, why, in kube-scheduler's words.

In: a pod, its requests, a node with its pods. Out: reasons against it; none means it fits. Pure. As in kube-scheduler
the first rule that fails speaks alone; `lasting` says that it would fail on the empty node too, so that no preemption
helps. What other nodes' pods decide is in `interpod`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler.cluster import Amounts, NodeState
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import Quantity

NO_NODES = "no nodes available to schedule pods"
UNSCHEDULABLE_TAINT: Json = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Against(NamedTuple):
    """Reasons against a node."""

    reasons: tuple[str, ...]
    lasting: bool


def against(pod: ApiObject, asked: Amounts, state: NodeState) -> Against | None:
    """Why the pod cannot run on the node, whatever runs elsewhere; None when it can."""
    node = state.node
    tolerations = pod.spec.get("tolerations") or ()
    if node.spec.get("unschedulable") and not _is_tolerated(UNSCHEDULABLE_TAINT, tolerations):
        return Against(("node(s) were unschedulable",), True)
    if not state.usable:
        return Against(("node(s) were not ready",), True)
    if any(_is_hard(taint) and not _is_tolerated(taint, tolerations) for taint in node.spec.get("taints") or ()):
        return Against(("node(s) had untolerated taint(s)",), True)
    if not matches_labels(pod, node):
        return Against(("node(s) didn't match Pod's node affinity/selector",), True)
    if not _has_ports(pod, state):
        return Against(("node(s) didn't have free ports for the requested pod ports",), False)
    return _insufficient(asked, state)


def _insufficient(asked: Amounts, state: NodeState) -> Against | None:
    short = [name for name, amount in asked.items() if amount and state.free.get(name, 0) < amount]
    if not short:
        return None
    lasting = any(asked[name] > state.allocatable.get(name, 0) for name in short)
    reasons = ("Too many pods" if name == "pods" else f"Insufficient {name}" for name in short)
    return Against(tuple(reasons), lasting)


LOCAL = "trainwright.dev/tier"
"""The annotation of a node that is this machine, which gets no larger and gets no neighbours."""


def never(asked: Amounts, states: Iterable[NodeState]) -> tuple[str, str] | None:
    """The first resource of which the pod asks for more than any node has at all, and the sentence; None if it may fit
    some day.

    Only where every node is this machine: a cluster may get another node.
    """
    short: tuple[str, str] | None = None
    for state in states:
        room = state.allocatable
        beyond = [(name, amount) for name, amount in asked.items() if amount and room.get(name, 0) < amount]
        if not state.node.metadata.annotation(LOCAL) or not room or not beyond:
            return None
        written = state.node.status.get("allocatable") or {}
        said = "; ".join(
            f"{name}, requested: {Quantity(amount)}, capacity: {written.get(name, 0)}" for name, amount in beyond
        )
        has = ", ".join(f"{written[name]} {name}" for name in sorted(room) if name not in ("pods", "ephemeral-storage"))
        short = beyond[0][0], f"Pod was rejected: Node didn't have enough resource: {said}. This machine has {has}"
    return short


def _has_ports(pod: ApiObject, state: NodeState) -> bool:
    wanted = _host_ports(pod)
    return not wanted or not any(wanted & _host_ports(other) for other in state.pods.values())


def _host_ports(pod: ApiObject) -> set[tuple[str, int]]:
    return {
        (port.get("protocol", "TCP"), port["hostPort"])
        for container in pod.spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _is_hard(taint: Json) -> bool:
    return taint.get("effect") in ("NoSchedule", "NoExecute")


def _is_tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def matches_labels(pod: ApiObject, node: ApiObject) -> bool:
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (pod.spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((pod.spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    fields = {"metadata.name": node.name}
    return any(
        all(_holds(requirement, labels) for requirement in term.get("matchExpressions") or ())
        and all(_holds(requirement, fields) for requirement in term.get("matchFields") or ())
        for term in affinity.get("nodeSelectorTerms") or ()
        if term
    )


def _holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement.get("key", ""), requirement.get("operator"), requirement.get("values") or []
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:  # Gt, Lt
            if value is None or not value.lstrip("-").isdecimal() or not values:
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def liking(pod: ApiObject, node: ApiObject) -> int:
    """The weights of preferred node affinity that the node earns."""
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    labels = node.metadata.labels or {}
    return sum(
        int(term.get("weight", 0))
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if all(_holds(rule, labels) for rule in (term.get("preference") or {}).get("matchExpressions") or ())
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key", ""))
    return bool(toleration.get("key") == taint.get("key", "") and toleration.get("value", "") == taint.get("value", ""))


def message(nodes: int, found: Iterable[Against | None], *, preemption: str = "") -> str:
    """`0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.`, and what preemption would do."""
    if not nodes:
        return NO_NODES
    counts: dict[str, int] = {}
    for one in found:
        for reason in one.reasons if one is not None else ():
            counts[reason] = counts.get(reason, 0) + 1
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {told}.{' ' if preemption else ''}{preemption}"
