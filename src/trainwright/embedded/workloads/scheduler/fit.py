"""Whether a pod fits a node, and if not, why, in kube-scheduler's words.

In: a pod, a node, the pods on it. Out: reasons against it; none means it fits. Pure. A constraint that this scheduler
does not support is a reason too, so that a pod waits with a message instead of being placed wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]


def requests(pod: ApiObject) -> Amounts:
    """The pod's requests: the sum of its containers or, if larger, the largest init container; plus overhead."""
    total: Amounts = {"pods": parse_quantity(1)}
    for container in pod.spec.get("containers") or ():
        _add(total, _asked(container))
    for container in pod.spec.get("initContainers") or ():
        for name, amount in _asked(container).items():
            if name not in total or total[name] < amount:
                total[name] = amount
    _add(total, {name: parse_quantity(amount) for name, amount in (pod.spec.get("overhead") or {}).items()})
    return total


def _asked(container: Json) -> Amounts:
    """The container's requests. A limit without a request counts as a request."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(amount) for name, amount in asked.items()}


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def reasons_against(pod: ApiObject, node: ApiObject, there: Iterable[ApiObject]) -> list[str]:
    """Why the pod cannot run on the node; empty when it can."""
    reasons = []
    if node.spec.get("unschedulable"):
        reasons.append("node(s) were unschedulable")
    if not node.is_true("Ready"):
        reasons.append("node(s) were not ready")
    if not _matches_labels(pod, node):
        reasons.append("node(s) didn't match Pod's node affinity/selector")
    reasons += _untolerated(pod, node)
    reasons += _insufficient(pod, node, there)
    reasons += _unsupported(pod)
    return reasons


def _insufficient(pod: ApiObject, node: ApiObject, there: Iterable[ApiObject]) -> list[str]:
    used: Amounts = {}
    for other in there:
        _add(used, requests(other))
    room = {name: parse_quantity(amount) for name, amount in (node.status.get("allocatable") or {}).items()}
    reasons = []
    for name, amount in requests(pod).items():
        free = room.get(name, parse_quantity(0)) - used.get(name, parse_quantity(0))
        if amount and free < amount:
            reasons.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return reasons


def _matches_labels(pod: ApiObject, node: ApiObject) -> bool:
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
        for term in affinity["nodeSelectorTerms"]
        if term
    )


def _holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values") or []
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
            if value is None or not value.lstrip("-").isdecimal():
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def _untolerated(pod: ApiObject, node: ApiObject) -> list[str]:
    reasons = []
    for taint in node.spec.get("taints") or ():
        if taint["effect"] == "PreferNoSchedule":
            continue
        if not any(_tolerates(toleration, taint) for toleration in pod.spec.get("tolerations") or ()):
            reasons.append(f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}")
    return reasons


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))


def _unsupported(pod: ApiObject) -> list[str]:
    reasons = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = (pod.spec.get("affinity") or {}).get(kind) or {}
        if rules.get("requiredDuringSchedulingIgnoredDuringExecution"):
            reasons.append(f"local scheduler(s) that do not support required {kind} yet")
    if any(c.get("whenUnsatisfiable") == "DoNotSchedule" for c in pod.spec.get("topologySpreadConstraints") or ()):
        reasons.append("local scheduler(s) that do not support topologySpreadConstraints yet")
    return reasons


def message(nodes: int, reasons: Iterable[list[str]]) -> str:
    """`0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.`"""
    counts: dict[str, int] = {}
    for against in reasons:
        for reason in against:
            counts[reason] = counts.get(reason, 0) + 1
    if not nodes:
        return "no nodes available to schedule pods"
    return (
        f"0/{nodes} nodes are available: {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
    )
