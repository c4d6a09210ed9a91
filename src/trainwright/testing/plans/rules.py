"""What holds in every run beyond the oracle's rules: of running workloads, of what they mount, of what trains once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainwright.schema.jsonobject import Json
from trainwright.testing import oracle
from trainwright.testing.plans.window import Loss
from trainwright.testing.watchlog import Change, histories, live


def violations(changes: list[Change], losses: Iterable[Loss] = ()) -> Iterator[str]:
    """`losses` are the workloads that were lost in the known window."""
    yield from _running_is_left_alone(changes)
    yield from _mounted_is_there(changes)
    yield from _trains_once(changes, {loss.rebuilt.uid: loss.lost.uid for loss in losses})


def _running_is_left_alone(changes: list[Change]) -> Iterator[str]:
    """The jobs of a JobSet that is not suspended never change."""
    for history in histories(change for change in changes if change.kind == "JobSet"):
        for before, after in itertools.pairwise(history):
            was, now = before.object["spec"], after.object["spec"]
            if not was.get("suspend") and was["replicatedJobs"] != now["replicatedJobs"]:
                yield f"I4: {after} changed its jobs while it ran"


def _mounted_is_there(changes: list[Change]) -> Iterator[str]:
    """What the pods of a JobSet mount exists, and belongs to the same TrainJob."""
    there = live(changes).values()
    by_name = {(change.kind, change.namespace, change.name): change for change in there}
    for job_set in (change for change in there if change.kind == "JobSet"):
        owner = oracle.owning_trainjob(job_set.object)
        for kind, name in _mounts(job_set.object["spec"]):
            found = by_name.get((kind, job_set.namespace, name))
            if found is None:
                yield f"I1: {job_set} mounts {kind} {name}, which is not there"
            elif owner is not None and (oracle.owning_trainjob(found.object) or {}).get("uid") != owner["uid"]:
                yield f"I2: {job_set} mounts {found}, which belongs to another TrainJob"


def _mounts(node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, list):
        for item in node:
            yield from _mounts(item)
    elif isinstance(node, dict):
        for volume in node.get("volumes") or ():
            yield from _mounted(volume)
        for value in node.values():
            yield from _mounts(value)


def _mounted(volume: Json) -> Iterator[tuple[str, str]]:
    for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
        if secret := source.get("secret"):
            yield "Secret", secret.get("secretName") or secret.get("name")
        if config := source.get("configMap"):
            yield "ConfigMap", config["name"]


def _trains_once(changes: list[Change], in_place_of: Mapping[str, str]) -> Iterator[str]:
    """After a JobSet of a TrainJob has ended, no other begins, but in place of the one that was lost."""
    ended: dict[str, Change] = {}
    seen: dict[str, set[str]] = {}
    for change in changes:
        owner = oracle.owning_trainjob(change.object) if change.kind == "JobSet" else None
        if owner is None:
            continue
        uids = seen.setdefault(owner["uid"], set())
        before = ended.get(owner["uid"])
        if change.uid not in uids and before is not None and in_place_of.get(change.uid) != before.uid:
            yield f"I12: {change} was made after {before} had ended"
        uids.add(change.uid)
        if any(oracle.has_condition(change.object, kind) for kind in ("Completed", "Failed")):
            ended[owner["uid"]] = change
