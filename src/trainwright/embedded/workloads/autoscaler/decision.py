"""What a HorizontalPodAutoscaler does now: pure.

In: the autoscaler, its target's scale, the target's pods and their metrics, what it did before, and the time. Out: the
number of replicas, the status, events, and what to remember. Of several metrics the one that asks for most decides; if
one of them says nothing, nothing shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trainwright.api.events import EventType
from trainwright.api.times import rfc3339
from trainwright.embedded.workloads.autoscaler import limits
from trainwright.embedded.workloads.autoscaler.limits import Memory, allowed
from trainwright.embedded.workloads.autoscaler.replicas import (
    NoAnswer,
    Proposal,
    Tolerance,
    by_utilization,
    by_value,
    samples,
)
from trainwright.embedded.workloads.objects import ApiObject, find_condition
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import BINARY_SI, DECIMAL_SI, Quantity, parse_quantity

UNABLE = "the HPA was unable to compute the replica count: "


class Seen(msgspec.Struct, frozen=True):
    """What the autoscaler looks at."""

    replicas: int
    """The scale's `spec.replicas`."""
    pods: Sequence[ApiObject]
    metrics: Sequence[Json] | str
    """Items of metrics.k8s.io, or why there are none."""


class Decision(msgspec.Struct, frozen=True):
    replicas: int | None
    """What to set the scale to; None to leave it."""
    status: Json
    memory: Memory
    events: tuple[tuple[EventType, str, str], ...] = ()
    """Type, reason and message of what is told whether or not the scale changes."""
    why: str = ""
    """The reason of a change."""


class _Answer(msgspec.Struct, frozen=True):
    """What all metrics say together."""

    replicas: int
    name: str
    current: list[Json]


class _Refusal(Exception):
    """The metrics say nothing; `reason` is the condition's."""

    def __init__(self, reason: str, message: str, current: list[Json], count: str) -> None:
        super().__init__(message)
        self.reason, self.current, self.count = reason, current, count


def decide(autoscaler: ApiObject, seen: Seen, memory: Memory, now: float) -> Decision:
    spec, current = autoscaler.spec, seen.replicas
    memory = memory.begun(current, now)
    status = _Status(autoscaler, now)
    status.set("AbleToScale", "SucceededGetScale", "the HPA controller was able to get the target's current scale")
    least, most = int(spec.get("minReplicas", 1)), int(spec["maxReplicas"])
    if current == 0:
        words = "scaling is disabled since the replica count of the target is zero"
        status.set("ScalingActive", "ScalingDisabled", words, is_true=False)
        return Decision(None, status.written(current, 0, [], changes=False), memory)
    if current > most or current < least:
        desired = most if current > most else least
        side = "above Spec.MaxReplicas" if current > most else "below Spec.MinReplicas"
        return _rescaled(status, current, desired, [], memory, f"Current number of replicas {side}", now)
    try:
        answer = _asked(spec, seen, now)
    except _Refusal as refusal:
        status.set("ScalingActive", refusal.reason, f"{UNABLE}{refusal}", is_true=False)
        events: tuple[tuple[EventType, str, str], ...] = (
            ("Warning", refusal.reason, str(refusal)),
            ("Warning", "FailedComputeMetricsReplicas", refusal.count),
        )
        kept = autoscaler.status.get("desiredReplicas", 0)
        return Decision(None, status.written(current, kept, refusal.current, changes=False), memory, events)
    words = f"the HPA was able to successfully calculate a replica count from {answer.name}"
    status.set("ScalingActive", "ValidMetricFound", words)
    verdict = allowed(answer.replicas, current, spec, memory, now)
    status.set("AbleToScale", *verdict.able)
    status.set("ScalingLimited", *verdict.limited, is_true=verdict.limited != limits.WITHIN)
    if verdict.replicas == current:
        written = status.written(current, current, answer.current, changes=False)
        return Decision(None, written, verdict.memory)
    why = "All metrics below target" if verdict.replicas < current else f"{answer.name} above target"
    return _rescaled(status, current, verdict.replicas, answer.current, verdict.memory, why, now)


def _rescaled(
    status: _Status, current: int, desired: int, metrics: list[Json], memory: Memory, why: str, now: float
) -> Decision:
    words = f"the HPA controller was able to update the target scale to {desired}"
    status.set("AbleToScale", "SucceededRescale", words)
    written = status.written(current, desired, metrics, changes=True)
    event: tuple[EventType, str, str] = ("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {why}")
    return Decision(desired, written, memory.changed(desired - current, now), (event,), why)


def _asked(spec: Json, seen: Seen, now: float) -> _Answer:
    """Of all metrics, the one that asks for most."""
    best: tuple[int, str] | None = None
    current: list[Json] = []
    faults: list[tuple[str, str, str]] = []
    all_metrics = spec.get("metrics") or ()
    for metric in all_metrics:
        try:
            proposal, name, shown = _one(metric, spec, seen, now)
        except NoAnswer as error:
            faults.append((*_named(metric), str(error)))
            current.append({"type": ""})  # as kube-controller-manager shows it
            continue
        current.append(shown)
        if best is None or proposal.replicas > best[0]:
            best = (proposal.replicas, name)
    if best is None or (faults and best[0] < seen.replicas):
        reason, kind, message = faults[0] if faults else ("InvalidMetricSourceType", "", "no metrics")
        count = f"invalid metrics ({len(faults)} invalid out of {len(all_metrics)}), first error is: "
        raise _Refusal(reason, message, current, f"{count}failed to get {kind} metric value: {message}")
    return _Answer(best[0], best[1], current)


def _named(metric: Json) -> tuple[str, str]:
    """The condition's reason for a metric that says nothing, and what it is called."""
    kind = metric.get("type", "")
    if kind not in ("Resource", "ContainerResource"):
        return (f"FailedGet{kind}Metric", kind.lower())
    name = (metric.get("resource") or metric.get("containerResource") or {}).get("name", "")
    return (f"FailedGet{kind}Metric", f"{name} {'resource' if kind == 'Resource' else 'container resource'}")


def _one(metric: Json, spec: Json, seen: Seen, now: float) -> tuple[Proposal, str, Json]:
    kind = metric.get("type")
    source = metric.get("resource") if kind == "Resource" else metric.get("containerResource")
    if kind not in ("Resource", "ContainerResource") or source is None:
        raise NoAnswer(f"this cluster has no metrics of type {kind}: only those of pods' CPU and memory")
    resource, container = source["name"], source.get("container")
    target = source.get("target") or {}
    words = "usage" if target.get("averageValue") is not None else "utilization"
    tolerance = _tolerance(spec)
    try:
        if isinstance(seen.metrics, str):
            raise NoAnswer(f"unable to get metrics for resource {resource}: {seen.metrics}")
        usage = samples(seen.metrics, resource, container)
        if words == "usage":
            wanted = -(-parse_quantity(target["averageValue"]).nano // 10**6)
            proposal = by_value(resource, seen.pods, usage, wanted, seen.replicas, tolerance, now)
            name = f"{resource} {'resource' if container is None else 'container resource'}"
        elif target.get("averageUtilization") is not None:
            percent = int(target["averageUtilization"])
            proposal = by_utilization(
                resource, seen.pods, usage, percent, seen.replicas, tolerance, now, container=container
            )
            whose = "resource" if container is None else "container resource"
            name = f"{resource} {whose} utilization (percentage of request)"
        else:
            raise NoAnswer(
                "invalid resource metric source: neither an average utilization target nor an average value (usage)"
                " target was set"
            )
    except NoAnswer as error:
        raise NoAnswer(f"failed to get {resource} {words}: {error}") from None
    form = DECIMAL_SI if resource == "cpu" else BINARY_SI
    average: Json = {"averageValue": str(Quantity(proposal.average * 10**6, form))}
    if proposal.utilization is not None:
        average = {"averageUtilization": proposal.utilization, **average}
    field = "resource" if kind == "Resource" else "containerResource"
    named = {"name": resource, **({} if container is None else {"container": container})}
    return proposal, name, {"type": kind, field: {**named, "current": average}}


def _tolerance(spec: Json) -> Tolerance:
    behavior = spec.get("behavior") or {}
    values = {
        side: (behavior.get(field) or {}).get("tolerance") for side, field in (("up", "scaleUp"), ("down", "scaleDown"))
    }
    return Tolerance(**{side: parse_quantity(text).nano / 10**9 for side, text in values.items() if text is not None})


class _Status:
    """The status as it comes to be."""

    def __init__(self, autoscaler: ApiObject, now: float) -> None:
        self._old = autoscaler.status
        self._now = rfc3339(now)
        self.conditions: list[Json] = [dict(it) for it in autoscaler.status.get("conditions") or ()]

    def set(self, type: str, reason: str, message: str, *, is_true: bool = True) -> None:
        status = "True" if is_true else "False"
        found = find_condition(self.conditions, type)
        if found is None:
            found = {"type": type}
            self.conditions.append(found)
        if found.get("status") != status:
            found["lastTransitionTime"] = self._now
        found |= {"status": status, "reason": reason, "message": message}

    def written(self, current: int, desired: int, metrics: list[Json], *, changes: bool) -> Json:
        status: Json = {
            "currentReplicas": current,
            "desiredReplicas": desired,
            "currentMetrics": metrics,
            "conditions": self.conditions,
        }
        last = self._now if changes else self._old.get("lastScaleTime")
        return status if last is None else {**status, "lastScaleTime": last}


def unreachable(autoscaler: ApiObject, message: str, now: float) -> Json:
    """The status of an autoscaler whose target has no scale."""
    status = _Status(autoscaler, now)
    words = f"the HPA controller was unable to get the target's current scale: {message}"
    status.set("AbleToScale", "FailedGetScale", words, is_true=False)
    return {**autoscaler.status, "conditions": status.conditions}
