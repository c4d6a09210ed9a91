"""Whether this machine would run what a TrainJob becomes, found out without a cluster: for `validate --local`.

In: the objects that the operator would write. Out: each reason for which the local node would refuse a pod, in its own
words, and each resource of which a pod asks for more than there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from trainwright.embedded.node import registration
from trainwright.embedded.node.podspec.support import refusals
from trainwright.embedded.node.resources import devices
from trainwright.embedded.node.supervision import tiers
from trainwright.embedded.node.supervision.tiers import Tier
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import Quantity, parse_quantity


def this_machine() -> tuple[Tier, dict[str, str]]:
    """What the local node would find here: the isolation it may use, and its resources."""
    return tiers.probe(), registration.capacity(devices.find(os.environ))


def why_not(objects: Sequence[Json], tier: Tier, capacity: Mapping[str, str]) -> list[str]:
    """Every reason for which a pod of these objects would not run here."""
    return [f"{job}: {reason}" for job, pod in _pods(objects) for reason in _reasons(pod, tier, capacity)]


def _pods(objects: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for thing in objects:
        for job in (thing.get("spec") or {}).get("replicatedJobs") or ():
            template = job["template"]["spec"]["template"]
            yield job["name"], {"metadata": template.get("metadata") or {}, "spec": template["spec"]}


def _reasons(pod: Json, tier: Tier, capacity: Mapping[str, str]) -> Iterator[str]:
    yield from refusals(pod, tier)
    asked: dict[str, Quantity] = {}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            asked[name] = asked.get(name, parse_quantity(0)) + parse_quantity(amount)
    for name, total in asked.items():
        if total and parse_quantity(capacity.get(name, "0")) < total:
            yield f"asks for {total} {name}, and this machine has {capacity.get(name, 'none')}"
