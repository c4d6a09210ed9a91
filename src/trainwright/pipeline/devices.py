"""The GPUs of a TrainJob, as text on its workload: whoever accounts for them need not read the pods.

In: what a build knows. Out: `node:nvidia.com/gpu=16,launcher:nvidia.com/gpu=1`, for each part of the workload the
devices of all its pods; of an elastic part, whose pods change in number, those of one pod: `node:nvidia.com/gpu=8*`.
A workload without devices carries no such text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainwright.pipeline.info import Info
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import QuantityError, parse_quantity

DEVICES_ANNOTATION = "trainwright.dev/devices"
"""On a workload: the GPUs of its parts."""
EACH = "*"
_DEVICE = re.compile(r"gpu|/mig-|gaudi|/tpu|neuron", re.IGNORECASE)


class Devices(NamedTuple):
    """So many devices of one kind in one part of a workload."""

    part: str
    resource: str
    number: int
    each: bool
    """Of one pod; else of all pods together."""

    def __str__(self) -> str:
        return f"{self.part}:{self.resource}={self.number}{EACH if self.each else ''}"


def devices_of(info: Info) -> str:
    """The text for the workload; empty when no pod of the gang asks for a device."""
    return ",".join(str(item) for item in _devices(info))


def _devices(info: Info) -> Iterator[Devices]:
    for pod_set in info.gang:
        each = info.node_range is not None and pod_set.least is not None
        pods = 1 if each else pod_set.replicas * pod_set.count
        for resource, count in _pod_devices(pod_set.pod_spec).items():
            yield Devices(pod_set.name, resource, count * pods, each)


def _pod_devices(pod_spec: Json) -> dict[str, int]:
    found: dict[str, int] = {}
    for container in pod_spec.get("containers") or ():
        resources = container.get("resources") or {}
        for name, value in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            if _DEVICE.search(name) and (count := _count(value)) > 0:
                found[name] = found.get(name, 0) + count
    return found


def _count(value: Any) -> int:
    try:
        return parse_quantity(value).value()
    except QuantityError:  # admission says what is wrong with it
        return 0


def parse_devices(text: str | None) -> list[Devices]:
    """What the text says; whatever is not of its form is left out."""
    found = []
    for item in (text or "").split(","):
        part, _, rest = item.partition(":")
        resource, _, number = rest.rpartition("=")
        count = number.removesuffix(EACH)
        if part and resource and count.isdecimal():
            found.append(Devices(part, resource, int(count), number.endswith(EACH)))
    return found
