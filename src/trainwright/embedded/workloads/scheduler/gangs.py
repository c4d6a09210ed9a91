"""Gangs: pods that start together or not at all. Which pods belong to one, and what it asks for. No I/O.

Three kinds of PodGroup are known: coscheduling's (a label, under a scheduler of its own), Volcano's (an annotation,
under `volcano`) and Kubernetes' own (`schedulingGroup` in the pod's spec, under any scheduler).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trainwright.api.times import seconds_of
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.embedded.workloads.scheduler.cluster import priority

DEFAULT_SCHEDULER = "default-scheduler"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
COSCHEDULING, VOLCANO, NATIVE = "coscheduling", "volcano", "native"
SCHEDULERS = (DEFAULT_SCHEDULER, "scheduler-plugins-scheduler", "volcano")


class GroupKey(NamedTuple):
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def group_of(pod: ApiObject) -> GroupKey | None:
    """The PodGroup that a pod names, if its scheduler acts on it."""
    namespace = pod.metadata.namespace
    native = (pod.spec.get("schedulingGroup") or {}).get("podGroupName")
    if native:
        return GroupKey(NATIVE, namespace, native)
    if pod.spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER:
        return None
    name = pod.metadata.annotation(VOLCANO_ANNOTATION)
    if name:
        return GroupKey(VOLCANO, namespace, name)
    name = pod.metadata.label(COSCHEDULING_LABEL)
    return GroupKey(COSCHEDULING, namespace, name) if name else None


def is_ours(pod: ApiObject) -> bool:
    """Whether this scheduler places the pod: one of the names it goes by, or any name for a pod of a group."""
    return pod.spec.get("schedulerName", DEFAULT_SCHEDULER) in SCHEDULERS or group_of(pod) is not None


@dataclass(slots=True)
class Unit:
    """What is placed at once: a gang, or a single pod."""

    pods: list[ApiObject]
    group: GroupKey | None = None
    minimum: int = 1
    running: int = 0
    timeout: float | None = None
    created: float = 0.0
    priority: int = 0
    order: tuple[int, bool, float, str] = field(default=(0, False, 0.0, ""))

    @property
    def is_complete(self) -> bool:
        return self.running + len(self.pods) >= self.minimum

    def waits_since(self) -> float:
        """When the last of its pods came."""
        return max(_created(pod) for pod in self.pods)


def units(
    waiting: Iterable[ApiObject], started: Mapping[GroupKey, int], groups: Mapping[GroupKey, ApiObject]
) -> tuple[list[Unit], list[ApiObject]]:
    """What waits, in the order of the queue: by priority, a gang that has begun to start, age. And pods whose group
    does not exist.
    """
    made: list[Unit] = []
    gangs: dict[GroupKey, Unit] = {}
    homeless: list[ApiObject] = []
    for pod in waiting:
        key = group_of(pod)
        if key is None:
            made.append(Unit([pod], created=_created(pod), priority=priority(pod)))
        elif key not in groups:
            homeless.append(pod)
        elif key in gangs:
            gangs[key].pods.append(pod)
        else:
            gangs[key] = _gang(key, groups[key], pod)
    for key, unit in gangs.items():
        unit.running = started.get(key, 0)
        unit.pods.sort(key=lambda pod: (_created(pod), pod.name))
        unit.priority = max(priority(pod) for pod in unit.pods)
        if unit.minimum <= 1:  # no gang at all: its pods go one by one
            made += [Unit([pod], unit.group, created=_created(pod), priority=priority(pod)) for pod in unit.pods]
        else:
            made.append(unit)
    for unit in made:
        name = f"{unit.pods[0].metadata.namespace}/{unit.pods[0].name}"
        unit.order = (-unit.priority, unit.running == 0, unit.created, name)
    return sorted(made, key=lambda unit: unit.order), homeless


def _gang(key: GroupKey, group: ApiObject, pod: ApiObject) -> Unit:
    timeout = group.spec.get("scheduleTimeoutSeconds")
    stamp = group.metadata.creation_timestamp
    created = seconds_of(stamp) if stamp else _created(pod)
    return Unit([pod], key, minimum(key, group), timeout=timeout, created=created)


def minimum(key: GroupKey, group: ApiObject) -> int:
    """How many pods must start at once."""
    if key.kind == NATIVE:
        gang = (group.spec.get("schedulingPolicy") or {}).get("gang") or {}
        return int(gang.get("minCount", 1))
    return int(group.spec.get("minMember", 1))


def _created(pod: ApiObject) -> float:
    stamp = pod.metadata.creation_timestamp
    return seconds_of(stamp) if stamp else 0.0
