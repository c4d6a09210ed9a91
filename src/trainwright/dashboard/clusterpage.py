"""The cluster: its nodes and what is free on them, and the TrainJobs that wait in queues and gangs, with the reason."""

from __future__ import annotations

import time
from collections.abc import Iterable

from trainwright.api.phases import name_of
from trainwright.api.resources import (
    JOB_SETS,
    NODES,
    POD_GROUPS,
    PODS,
    TRAIN_JOBS,
    VOLCANO_POD_GROUPS,
    Resource,
)
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.client.client import Client
from trainwright.client.errors import ApiError
from trainwright.dashboard.rows import row_of
from trainwright.pipeline.reasons.evidence import condition_of, labels_of, phase_name, status_of
from trainwright.pipeline.reasons.queues import QUEUE_LABEL
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import parse_quantity

ENDED = ("Succeeded", "Failed")


async def described(client: Client, namespace: str) -> Json:
    home = namespace or None
    may_not: list[str] = []

    async def listed(resource: Resource, where: str | None) -> list[Json]:
        try:
            return (await client.list(resource, where)).items or []
        except ApiError as error:
            if error.code == 403:
                may_not.append(resource.group_resource)
            return []

    pods = await listed(PODS, home)
    nodes = await listed(NODES, None)
    jobs, jobsets = await listed(TRAIN_JOBS, home), await listed(JOB_SETS, home)
    groups = [*await listed(POD_GROUPS, home), *await listed(VOLCANO_POD_GROUPS, home)]
    return {
        "nodes": [_node(node, pods) for node in sorted(nodes, key=name_of)],
        "waiting": list(_waiting(jobs, jobsets, pods, may_not)),
        "gangs": [_gang(group, pods) for group in groups],
        "version": await _version(client),
        "forbidden": may_not,
    }


async def _version(client: Client) -> str:
    try:
        return str((await client.raw("/version")).get("gitVersion") or "")
    except ApiError:
        return ""


def _node(node: Json, pods: Iterable[Json]) -> Json:
    mine = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == name_of(node)]
    live = [pod for pod in mine if phase_name(pod) not in ENDED]
    room = status_of(node).get("allocatable") or {}
    shown = [name for name in room if name in ("cpu", "memory") or "gpu" in name.lower()]
    return {
        "name": name_of(node),
        "ready": condition_of(node, "Ready") is not None,
        "why": _trouble(node),
        "taints": [f"{t.get('key')}:{t.get('effect')}" for t in (node.get("spec") or {}).get("taints") or ()],
        "pods": len(live),
        "jobs": sorted({str(labels_of(pod).get(JOBSET_NAME)) for pod in live if labels_of(pod).get(JOBSET_NAME)}),
        "resources": [
            {"name": name, "room": _amount(room[name]), "asked": sum(_asked(pod, name) for pod in live)}
            for name in shown
        ],
    }


def _trouble(node: Json) -> str:
    ready = condition_of(node, "Ready", "False") or condition_of(node, "Ready", "Unknown")
    if ready is not None:
        return str(ready.get("message") or ready.get("reason") or "not ready")
    for kind in ("DiskPressure", "MemoryPressure", "PIDPressure"):
        if found := condition_of(node, kind):
            return str(found.get("message") or kind)
    return "cordoned: no new pod is placed here" if (node.get("spec") or {}).get("unschedulable") else ""


def _asked(pod: Json, resource: str) -> float:
    total = 0.0
    for container in (pod.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        amount = (resources.get("requests") or {}).get(resource) or (resources.get("limits") or {}).get(resource)
        total += _amount(amount) if amount is not None else 0.0
    return total


def _amount(text: object) -> float:
    return parse_quantity(str(text)).nano / 1e9


def _waiting(jobs: Iterable[Json], jobsets: Iterable[Json], pods: list[Json], may_not: list[str]) -> Iterable[Json]:
    """TrainJobs that do not run yet, oldest first, with what they wait for."""
    by_name = {(item["metadata"]["namespace"], name_of(item)): item for item in jobsets}
    by_job: dict[tuple[str, str], list[Json]] = {}
    for pod in pods:
        by_job.setdefault((pod["metadata"]["namespace"], str(labels_of(pod).get(JOBSET_NAME) or "")), []).append(pod)
    for job in sorted(jobs, key=lambda job: str(job["metadata"].get("creationTimestamp") or "")):
        key = job["metadata"]["namespace"], name_of(job)
        row = row_of(job, by_name.get(key), by_job.get(key, []), time.time(), sees_workloads=not may_not)
        queue = str(labels_of(job).get(QUEUE_LABEL) or "")
        if row["state"] == "Pending" or (row["state"] == "Suspended" and queue):
            yield {**row, "queue": queue}


def _gang(group: Json, pods: Iterable[Json]) -> Json:
    spec, place = group.get("spec") or {}, group["metadata"]["namespace"]
    mine = [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == place and labels_of(pod).get(JOBSET_NAME) == name_of(group)
    ]
    bound = [pod for pod in mine if (pod.get("spec") or {}).get("nodeName") and phase_name(pod) not in ENDED]
    return {
        "name": name_of(group),
        "namespace": place,
        "needs": spec.get("minMember"),
        "placed": len(bound),
        "pods": len(mine),
        "phase": str(status_of(group).get("phase") or ""),
    }
