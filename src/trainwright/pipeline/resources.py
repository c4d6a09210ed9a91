"""What a training node is given, and what a whole pod asks for.

Two questions with two answers. How many processes should start on a node? That looks at the devices and CPUs of the
container `node` (`node_resources`, `gpu_count`, `cpu_count`). How much must a scheduler find before the gang can
start? That is the effective request of a pod, as the kubelet and the scheduler count it (`pod_requests`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trainwright.pipeline.sparse import sparse
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import Quantity, QuantityError, parse_quantity

Amounts = dict[str, Quantity]


class Resources(NamedTuple):
    """Limits and requests of one node, as written."""

    limits: Mapping[str, Any]
    requests: Mapping[str, Any]

    @classmethod
    def of(cls, requirements: Mapping[str, Any] | None) -> Resources:
        requirements = requirements or {}
        return cls(requirements.get("limits") or {}, requirements.get("requests") or {})

    @property
    def gpus(self) -> int:
        """The first resource with `gpu` in its name: among requests, and if there are none among limits."""
        return _first_gpu(self.requests) or _first_gpu(self.limits)

    @property
    def cpus(self) -> int:
        """Whole CPUs, rounded up, by the request, and if there is none by the limit."""
        return _count(self.requests.get("cpu")) or _count(self.limits.get("cpu"))


def merge_requirements(container: Json, requirements: Mapping[str, Any]) -> None:
    """Lay a TrainJob's resourcesPerNode over a container, resource by resource; what it does not name stays."""
    current = Resources.of(container.get("resources"))
    wanted = Resources.of(sparse(dict(requirements), "core.ResourceRequirements"))
    merged: Json = {}
    if limits := {**current.limits, **wanted.limits}:
        merged["limits"] = limits
    if requests := {**current.requests, **wanted.requests}:
        merged["requests"] = requests
    container["resources"] = merged


def pod_requests(pod_spec: Json) -> Amounts:
    """The effective requests of a pod: running containers together, or the hungriest moment of its start, plus
    overhead.
    """
    total: Amounts = {}
    for container in pod_spec.get("containers") or []:
        _add(total, _requests(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod_spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":  # a sidecar: it stays, beside all that come after it
            _add(total, _requests(container))
            _add(sidecars, _requests(container))
            use = dict(sidecars)
        else:
            use = _requests(container)
            _add(use, sidecars)
        _raise_to(peak, use)
    _raise_to(total, peak)
    for name, amount in _requests(pod_spec).items():  # pod-level resources, where a pod may set these three
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total[name] = amount
    _add(total, _amounts(pod_spec.get("overhead")))
    return total


def _requests(owner: Json) -> Amounts:
    return _amounts((owner.get("resources") or {}).get("requests"))


def _amounts(values: Mapping[str, Any] | None) -> Amounts:
    return {name: parse_quantity(value) for name, value in (values or {}).items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def _first_gpu(values: Mapping[str, Any]) -> int:
    return next((_count(value) for name, value in values.items() if "gpu" in name.lower()), 0)


def _count(value: Any) -> int:
    if value is None:
        return 0
    try:
        return parse_quantity(value).value()
    except QuantityError:  # the schema refuses it at admission; counting is not the place to fail
        return 0
