"""Which GPUs and which CPUs each pod has.

In: the machine's devices and CPUs, pods that start and end. Out: devices that no other pod has, CPUs that fewest others
have, and the variables that show a container its GPUs and no others. A pod's allotment is kept in its `pod.json`, for
the node that adopts it. Invariant: no device is allotted to two pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainwright.embedded.node.resources.devices import AMD, NVIDIA, Device, Devices
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

VISIBLE = {NVIDIA: "CUDA_VISIBLE_DEVICES", AMD: "ROCR_VISIBLE_DEVICES"}
"""The variable by which each vendor's libraries are told which GPUs there are."""


@dataclass(frozen=True, slots=True)
class Allotted:
    """The devices of each container, by container and resource; the CPUs of the pod, empty for all."""

    devices: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()


class NoneLeft(Exception):
    """There are not enough devices for a pod; the message has the figures."""


class Allotments:
    """The allotments of a node's pods, by uid."""

    def __init__(self, devices: Devices, cpus: Iterable[int]) -> None:
        self._devices = devices
        self._cpus = sorted(cpus)
        self._taken: dict[str, Allotted] = {}

    def adopt(self, uid: str, devices: Mapping[str, Mapping[str, list[str]]], cpus: Iterable[int]) -> None:
        self._taken[uid] = Allotted(devices, tuple(cpus))

    def release(self, uid: str) -> None:
        self._taken.pop(uid, None)

    def allot(self, uid: str, spec: Json) -> Allotted:
        """What a pod of this spec gets; the same again while it has it. Raises `NoneLeft`."""
        if uid in self._taken:
            return self._taken[uid]
        made = Allotted(self._choose_devices(spec), self._choose_cpus(spec))
        self._taken[uid] = made
        return made

    def _choose_devices(self, spec: Json) -> dict[str, dict[str, list[str]]]:
        """Init containers run before the others and share their devices; the others get devices of their own."""
        chosen: dict[str, dict[str, list[str]]] = {}
        for name, devices in self._devices.items():
            used = {id for one in self._taken.values() for of in one.devices.values() for id in of.get(name, ())}
            free = [device.id for device in devices if device.id not in used]
            rest = list(free)
            for container in spec["containers"]:
                wanted = asked(container, name)
                if wanted > len(rest):
                    raise NoneLeft(_too_few(name, wanted, len(rest), len(devices)))
                if wanted:
                    chosen.setdefault(container["name"], {})[name] = rest[:wanted]
                rest = rest[wanted:]
            for container in spec.get("initContainers") or ():
                wanted = asked(container, name)
                pool = rest if container.get("restartPolicy") == "Always" else free
                if wanted > len(pool):
                    raise NoneLeft(_too_few(name, wanted, len(pool), len(devices)))
                if wanted:
                    chosen.setdefault(container["name"], {})[name] = pool[:wanted]
                if pool is rest:
                    rest = rest[wanted:]
        return chosen

    def _choose_cpus(self, spec: Json) -> tuple[int, ...]:
        """As many CPUs as the pod's limits come to, those that fewest pods have first; none without limits."""
        wanted = _cpu_limit(spec)
        if wanted is None or wanted >= len(self._cpus):
            return ()
        load = Counter(cpu for one in self._taken.values() for cpu in one.cpus)
        return tuple(sorted(sorted(self._cpus, key=lambda cpu: (load[cpu], cpu))[:wanted]))

    def variables(self, container: str, allotted: Allotted) -> dict[str, str]:
        """The variables that show a container its own GPUs only; of a kind that the machine has none of, nothing."""
        shown = {}
        for name, variable in VISIBLE.items():
            if name not in self._devices:
                continue
            ids = allotted.devices.get(container, {}).get(name, [])
            shown[variable] = ",".join(str(device.index) for device in self._devices[name] if device.id in ids)
        if shown.get("CUDA_VISIBLE_DEVICES"):
            shown["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # else CUDA numbers the fastest GPU first
        return shown


def asked(container: Json, name: str) -> int:
    resources = container.get("resources") or {}
    amount = (resources.get("limits") or {}).get(name) or (resources.get("requests") or {}).get(name) or 0
    return int(parse_quantity(amount).nano // 10**9)


def _cpu_limit(spec: Json) -> int | None:
    """The limits of all containers together, in whole CPUs; None if one has no limit."""
    total = 0
    for container in spec["containers"]:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("cpu")
        if limit is None:
            return None
        total += parse_quantity(limit).nano
    return max(1, -(-total // 10**9))


def _too_few(name: str, wanted: int, free: int, there: int) -> str:
    return (
        f"Allocate failed due to requested number of devices unavailable for {name}. "
        f"Requested: {wanted}, Available: {free} of {there}"
    )


def counts(devices: Devices) -> dict[str, str]:
    """The node's capacity of devices."""
    return {name: str(len(found)) for name, found in devices.items()}


def models(devices: Iterable[Device]) -> list[str]:
    """`2 NVIDIA A100`, for people."""
    return [f"{count} {model or 'of unknown model'}" for model, count in Counter(d.model for d in devices).items()]
