"""What one resource metric asks for, from the usage of the pods: pure, as kube-controller-manager reckons it.

In: pods, their usage in thousandths of a unit, and a target. Out: a number of replicas and the usage that was seen, or
`NoAnswer` in kube-controller-manager's words. Pods that are not ready do not count; growing, they count as idle; pods
that nobody measured count as idle when growing and as fully used when shrinking. Within the tolerance nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import QuantityError, parse_quantity

CPU = "cpu"
INITIALIZATION_SECONDS = 300.0
"""For so long after its start a pod's CPU may be that of starting."""
INITIAL_READINESS_SECONDS = 30.0


class NoAnswer(Exception):
    """A metric that says nothing now."""


class Sample(msgspec.Struct, frozen=True):
    """What a pod uses, in thousandths, over a window that ended at a time."""

    value: int
    at: float
    window: float


class Tolerance(msgspec.Struct, frozen=True):
    down: float = 0.1
    up: float = 0.1

    def contains(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Proposal(msgspec.Struct, frozen=True):
    replicas: int
    average: int
    """What a measured pod uses, in thousandths."""
    utilization: int | None = None
    """That in percent of what the pods request."""


class _Groups(msgspec.Struct):
    ready: int = 0
    unready: list[str] = []
    missing: list[str] = []
    ignored: list[str] = []


def samples(metrics: Sequence[Json], resource: str, container: str | None = None) -> dict[str, Sample]:
    """The usage of each pod, from the items of metrics.k8s.io. A pod of which a container is not measured has none."""
    found: dict[str, Sample] = {}
    for item in metrics:
        values: list[int] = []
        parts = [part for part in item.get("containers") or () if container in (None, part.get("name"))]
        for part in parts:
            text = (part.get("usage") or {}).get(resource)
            if text is not None:
                values.append(_milli(text))
        if parts and len(values) == len(parts):
            at, window = seconds_of(item["timestamp"]), _seconds(str(item.get("window") or "0s"))
            found[item["metadata"]["name"]] = Sample(sum(values), at, window)
    return found


def by_utilization(
    resource: str,
    pods: Sequence[ApiObject],
    usage: Mapping[str, Sample],
    target: int,
    current: int,
    tolerance: Tolerance,
    now: float,
    container: str | None = None,
) -> Proposal:
    """As many replicas as bring the usage to `target` percent of the requests."""
    if not usage:
        raise NoAnswer(f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API")
    if not pods:
        raise NoAnswer("no pods returned by selector while calculating replica count")
    groups = _grouped(pods, usage, resource, now)
    counted = {name: it.value for name, it in usage.items() if name not in (*groups.ignored, *groups.unready)}
    if not counted:
        raise NoAnswer("did not receive metrics for targeted pods (pods might be unready)")
    requests = {pod.name: _requested(pod, resource, container) for pod in pods}

    def used(values: Mapping[str, int]) -> int:
        wanted = sum(requests[name] for name in values if name in requests)
        if not wanted:
            raise NoAnswer("no metrics returned matched known pods")
        return sum(value for name, value in values.items() if name in requests) * 100 // wanted

    percent = used(counted)
    idle = max(100, target)
    full = {name: requests[name] * idle // 100 for name in groups.missing}
    replicas = _replicas(
        current, groups, counted, full, percent / target, lambda values: used(values) / target, tolerance
    )
    return Proposal(replicas, sum(counted.values()) // len(counted), percent)


def by_value(
    resource: str,
    pods: Sequence[ApiObject],
    usage: Mapping[str, Sample],
    target: int,
    current: int,
    tolerance: Tolerance,
    now: float,
) -> Proposal:
    """As many replicas as bring the average usage to `target` thousandths."""
    if not usage:
        raise NoAnswer(f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API")
    if not pods:
        raise NoAnswer("no pods returned by selector while calculating replica count")
    groups = _grouped(pods, usage, resource, now)
    counted = {name: it.value for name, it in usage.items() if name not in (*groups.ignored, *groups.unready)}
    if not counted:
        raise NoAnswer("did not receive metrics for targeted pods (pods might be unready)")

    def ratio(values: Mapping[str, int]) -> float:
        return (sum(values.values()) // len(values)) / target

    full = dict.fromkeys(groups.missing, target)
    replicas = _replicas(current, groups, counted, full, ratio(counted), ratio, tolerance)
    return Proposal(replicas, sum(counted.values()) // len(counted))


def _replicas(
    current: int,
    groups: _Groups,
    counted: dict[str, int],
    full: Mapping[str, int],
    ratio: float,
    ratio_of: Callable[[Mapping[str, int]], float],
    tolerance: Tolerance,
) -> int:
    grows_with_unready = bool(groups.unready) and ratio > 1
    if not grows_with_unready and not groups.missing:
        return current if tolerance.contains(ratio) else math.ceil(ratio * groups.ready)
    values = dict(counted)
    if ratio < 1:
        values |= full
    elif ratio > 1:
        values |= dict.fromkeys(groups.missing, 0)
    if grows_with_unready:
        values |= dict.fromkeys(groups.unready, 0)
    again = ratio_of(values)
    if tolerance.contains(again) or (ratio < 1 < again) or (again < 1 < ratio):
        return current
    replicas = math.ceil(again * len(values))
    turns_back = (again < 1 and replicas > current) or (again > 1 and replicas < current)
    return current if turns_back else replicas


def _grouped(pods: Sequence[ApiObject], usage: Mapping[str, Sample], resource: str, now: float) -> _Groups:
    groups = _Groups(0, [], [], [])
    for pod in pods:
        if pod.is_being_deleted or pod.phase == "Failed":
            groups.ignored.append(pod.name)
        elif pod.phase == "Pending":
            groups.unready.append(pod.name)
        elif pod.name not in usage:
            groups.missing.append(pod.name)
        elif resource == CPU and _is_starting(pod, usage[pod.name], now):
            groups.unready.append(pod.name)
        else:
            groups.ready += 1
    return groups


def _is_starting(pod: ApiObject, sample: Sample, now: float) -> bool:
    """Whether a pod's CPU says nothing yet."""
    ready, started = pod.condition("Ready"), pod.status.get("startTime")
    if ready is None or started is None:
        return True
    changed = seconds_of(ready["lastTransitionTime"]) if ready.get("lastTransitionTime") else 0.0
    begun, is_unready = seconds_of(started), ready.get("status") == "False"
    if begun + INITIALIZATION_SECONDS > now:
        return is_unready or sample.at < changed + sample.window
    return is_unready and begun + INITIAL_READINESS_SECONDS > changed


def _requested(pod: ApiObject, resource: str, container: str | None) -> int:
    total = 0
    for item in pod.spec.get("containers") or ():
        if container not in (None, item["name"]):
            continue
        text = ((item.get("resources") or {}).get("requests") or {}).get(resource)
        if text is None:
            raise NoAnswer(f"missing request for {resource} in container {item['name']} of Pod {pod.name}")
        total += _milli(text)
    return total


def _milli(text: str | float) -> int:
    """Thousandths, rounded up as Go does."""
    try:
        return -(-parse_quantity(text).nano // 10**6)
    except QuantityError as error:
        raise NoAnswer(f"{text!r} is not a quantity: {error}") from None


def _seconds(text: str) -> float:
    """A duration as metrics have it: `1s`, `10.5s`, `1m0s`."""
    seconds, number = 0.0, ""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    for letter in text:
        if letter in units and number:
            seconds, number = seconds + float(number) * units[letter], ""
        elif letter.isdigit() or letter == ".":
            number += letter
    return seconds
