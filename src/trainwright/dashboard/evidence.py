"""What a user may read about a TrainJob: the evidence for `why`.

In: a TrainJob's name. Out: the objects that lead from it to its reason, and the kinds that this user may not read or
that the cluster does not have. What cannot be read is left out; nothing is asked for twice.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from trainwright.api.resources import (
    EVENTS,
    JOB_SETS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_GROUPS,
    PODS,
    TRAIN_JOBS,
    VOLCANO_POD_GROUPS,
    Resource,
)
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.client.client import Client
from trainwright.client.errors import ApiError, Forbidden, NotFound
from trainwright.client.requests import Selection
from trainwright.pipeline.reasons import Evidence
from trainwright.pipeline.reasons.evidence import container_statuses, name_of, phase_name
from trainwright.schema.jsonobject import Json

KUEUE_WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload")
PENDING_WORKLOADS = tuple(
    Resource("visibility.kueue.x-k8s.io", version, "localqueues", "PendingWorkloadsSummary")
    for version in ("v1beta2", "v1beta1")
)
"""Kueue's visibility API: what waits in a LocalQueue, in order."""
NATIVE_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
LINES = 400
"""Of so many lines at the end of each container's log."""
CONTAINERS = 16
"""Of so many containers the lines are read."""


class Gathered(NamedTuple):
    evidence: Evidence
    forbidden: list[str]
    """The kinds that this user may not read."""


class Gathering:
    """Reads the objects of one TrainJob."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._forbidden: list[str] = []

    async def gather(self) -> Gathered | None:
        """Everything but the lines of logs; None when there is no such TrainJob."""
        try:
            job = await self._client.get(TRAIN_JOBS, self._name, self._namespace)
        except NotFound:
            return None
        ours: Selection = {"label_selector": f"{JOBSET_NAME}={self._name}"}
        workload = next(iter(await self._list(JOB_SETS, {"field_selector": f"metadata.name={self._name}"})), None)
        jobs = await self._list(JOBS, ours)
        pods = await self._list(PODS, ours)
        claims = await self._list(PERSISTENT_VOLUME_CLAIMS, {}) if any(map(_has_claims, pods)) else None
        suspended = bool((job.get("spec") or {}).get("suspend"))
        waiting = any(phase_name(pod) == "Pending" for pod in pods)
        said = str((job.get("status") or {}).get("message") or "") if workload is None else ""
        queued = await self._queued(job) if suspended else []
        evidence = Evidence(
            job=job,
            workload={"kind": JOB_SETS.kind, **workload} if workload else None,
            pods=pods,
            problem=said if said != "waiting for the workload to be created" else "",
            jobs=jobs,
            events=await self._events(job, workload, [*jobs, *pods, *(claims or ())]),
            nodes=await self._list(NODES, {}, everywhere=True),
            claims=claims,
            queued=queued,
            places=await self._places(queued),
            pod_groups=await self._pod_groups() if waiting or not pods else (),
            now=time.time(),
        )
        return Gathered(evidence, self._forbidden)

    async def lines(self, pods: list[Json]) -> dict[str, list[str]]:
        """The last lines of the containers that have run: those that failed first of all."""
        found: dict[str, list[str]] = {}
        for pod in sorted(pods, key=lambda pod: phase_name(pod) != "Failed"):
            for container in container_statuses(pod):
                state, last = container.get("state") or {}, container.get("lastState") or {}
                if len(found) < CONTAINERS and ("running" in state or "terminated" in state or "terminated" in last):
                    lines = await self._log(name_of(pod), str(container["name"]), previous="waiting" in state)
                    if lines is not None:
                        found[f"{name_of(pod)}/{container['name']}"] = lines
        return found

    async def _log(self, pod: str, container: str, *, previous: bool) -> list[str] | None:
        try:
            async with self._client.logs(
                pod, self._namespace, container=container, previous=previous, tail_lines=LINES, idle_seconds=10
            ) as stream:
                data = b"".join([chunk async for chunk in stream.chunks()])
        except Forbidden:
            self._forbid("pods/log")
            return None
        except ApiError:
            return None  # it has no log, or its node does not answer
        return [line.rsplit("\r", 1)[-1] for line in data.decode("utf-8", "replace").split("\n") if line]

    async def _list(self, resource: Resource, selection: Selection, *, everywhere: bool = False) -> list[Json]:
        try:
            listed = await self._client.list(resource, None if everywhere else self._namespace, **selection)
        except Forbidden:
            self._forbid(resource.group_resource)
            return []
        except ApiError:
            return []  # the cluster does not have this kind
        return [{"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in listed.items or ()]

    def _forbid(self, kind: str) -> None:
        if kind not in self._forbidden:
            self._forbidden.append(kind)

    async def _events(self, job: Json, workload: Json | None, others: list[Json]) -> list[Json]:
        """The events of this TrainJob's objects, oldest first; those of a predecessor of the same name left out."""
        names = {self._name} | {name_of(item) for item in (*others, *((workload,) if workload else ()))}
        since = str(job["metadata"].get("creationTimestamp") or "")
        found = [
            event
            for event in await self._list(EVENTS, {})
            if str((event.get("involvedObject") or {}).get("name") or "") in names and _time_of(event) >= since
        ]
        return sorted(found, key=_time_of)

    async def _queued(self, job: Json) -> list[Json]:
        uid = job["metadata"].get("uid")
        return [
            item
            for item in await self._list(KUEUE_WORKLOADS, {})
            if any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or ())
        ]

    async def _places(self, queued: list[Json]) -> list[Json]:
        """Where these Workloads stand in their queues, where Kueue's visibility API tells."""
        found: list[Json] = []
        for queue in {str((item.get("spec") or {}).get("queueName") or "") for item in queued} - {""}:
            for resource in PENDING_WORKLOADS:
                try:
                    summary = await self._client.get(resource, queue, self._namespace, subresource="pendingworkloads")
                except ApiError:
                    continue  # not served, away, or not for this user: what is known without it is enough
                found += summary.get("items") or []
                break
        return found

    async def _pod_groups(self) -> list[Json]:
        by_name: Selection = {"field_selector": f"metadata.name={self._name}"}
        found = []
        for resource in (POD_GROUPS, VOLCANO_POD_GROUPS, NATIVE_POD_GROUPS):
            found += await self._list(resource, by_name)
        return found


def _has_claims(pod: Json) -> bool:
    return any(volume.get("persistentVolumeClaim") for volume in (pod.get("spec") or {}).get("volumes") or ())


def _time_of(event: Json) -> str:
    metadata = event.get("metadata") or {}
    return str(event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp") or "")
