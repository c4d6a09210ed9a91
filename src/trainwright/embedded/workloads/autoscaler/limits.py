"""What of a recommendation is allowed: recent recommendations, rates of change, the fewest and the most replicas.

In: what the metrics ask for, the autoscaler's spec and what it did before. Out: a number, and why it is another one
than was asked for. Shrinking waits until no recommendation of the last five minutes was higher, unless the autoscaler
says otherwise in `behavior`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from trainwright.schema.jsonobject import Json

DOWN_SECONDS = 300.0
STABLE = ("ReadyForNewScale", "recommended size matches current size")
SHRINKS_LATER = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
GROWS_LATER = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
UP_RATE = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_RATE = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")

UP: Json = {
    "stabilizationWindowSeconds": 0,
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
DOWN: Json = {
    "stabilizationWindowSeconds": DOWN_SECONDS,
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class Event(msgspec.Struct, frozen=True):
    """A recommendation, or a change by so many replicas."""

    at: float
    replicas: int


class Memory(msgspec.Struct, frozen=True):
    """What one autoscaler recommended and did."""

    recommendations: tuple[Event, ...] = ()
    ups: tuple[Event, ...] = ()
    downs: tuple[Event, ...] = ()

    def begun(self, current: int, now: float) -> Memory:
        """What was there first counts as a recommendation."""
        return self if self.recommendations else msgspec.structs.replace(self, recommendations=(Event(now, current),))

    def changed(self, by: int, now: float) -> Memory:
        if by > 0:
            return msgspec.structs.replace(self, ups=(*self.ups[-99:], Event(now, by)))
        return msgspec.structs.replace(self, downs=(*self.downs[-99:], Event(now, -by)))


class Allowed(msgspec.Struct, frozen=True):
    replicas: int
    able: tuple[str, str]
    """Reason and message of AbleToScale."""
    limited: tuple[str, str]
    """Of ScalingLimited, which is true but for `WITHIN`."""
    memory: Memory


def allowed(wanted: int, current: int, spec: Json, memory: Memory, now: float) -> Allowed:
    behavior = spec.get("behavior")
    up = {**UP, **((behavior or {}).get("scaleUp") or {})}
    down = {**DOWN, **((behavior or {}).get("scaleDown") or {})}
    up_window, down_window = float(up["stabilizationWindowSeconds"]), float(down["stabilizationWindowSeconds"])
    recent = [it for it in memory.recommendations if now - it.at <= max(up_window, down_window)]
    least = min([wanted, *(it.replicas for it in recent if now - it.at < up_window)])
    most = max([wanted, *(it.replicas for it in recent if now - it.at < down_window)])
    stable = most if behavior is None else min(max(current, least), most)
    able = STABLE if stable == wanted else SHRINKS_LATER if stable > wanted else GROWS_LATER
    memory = msgspec.structs.replace(memory, recommendations=(*recent, Event(now, wanted)))
    if behavior is None:
        replicas, limited = _by_default(stable, current, spec)
    else:
        replicas, limited = _by_behavior(stable, current, spec, up, down, memory, now)
    return Allowed(replicas, able, limited, memory)


def _by_default(wanted: int, current: int, spec: Json) -> tuple[int, tuple[str, str]]:
    rate, most, least = max(2 * current, 4), int(spec["maxReplicas"]), int(spec.get("minReplicas", 1))
    if wanted < least:
        return least, TOO_FEW
    if wanted > min(most, rate):
        return min(most, rate), TOO_MANY if most <= rate else UP_RATE
    return wanted, WITHIN


def _by_behavior(
    wanted: int, current: int, spec: Json, up: Json, down: Json, memory: Memory, now: float
) -> tuple[int, tuple[str, str]]:
    most, least = int(spec["maxReplicas"]), int(spec.get("minReplicas", 1))
    if wanted > current:
        rate = max(current, _up_limit(current, up, memory, now))
        if wanted > min(most, rate):
            return min(most, rate), TOO_MANY if most <= rate else UP_RATE
    elif wanted < current:
        rate = min(current, _down_limit(current, down, memory, now))
        if wanted < max(least, rate):
            return max(least, rate), TOO_FEW if least >= rate else DOWN_RATE
    return wanted, WITHIN


def _up_limit(current: int, rules: Json, memory: Memory, now: float) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits = []
    for policy in rules.get("policies") or ():
        first = _before(current, policy, memory, now)
        value = int(policy["value"])
        limits.append(first + value if policy["type"] == "Pods" else math.ceil(first * (1 + value / 100)))
    return (min if rules.get("selectPolicy") == "Min" else max)(limits, default=current)


def _down_limit(current: int, rules: Json, memory: Memory, now: float) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits = []
    for policy in rules.get("policies") or ():
        first = _before(current, policy, memory, now)
        value = int(policy["value"])
        limits.append(first - value if policy["type"] == "Pods" else int(first * (1 - value / 100)))
    return (max if rules.get("selectPolicy") == "Min" else min)(limits, default=current)


def _before(current: int, policy: Json, memory: Memory, now: float) -> int:
    """The replicas at the beginning of a policy's period."""
    period = float(policy["periodSeconds"])
    return current - _sum(memory.ups, now - period) + _sum(memory.downs, now - period)


def _sum(events: Iterable[Event], since: float) -> int:
    return sum(event.replicas for event in events if event.at > since)
