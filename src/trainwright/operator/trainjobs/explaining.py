"""Why a TrainJob failed, or does not run: looks at its pods, when and only when there is something to explain.

In: a TrainJob and its workload. Out: a sentence for its status, an event that says the same, and when to look again.
Pods are listed once when the workload has failed; and when the pods of a started job are not all ready after ten
seconds, then again with growing pauses while that is so. A gang's PodGroup is read with them: its scheduler says there
what it says of no pod. Jobs that run or are suspended cost no request, and no pod is
watched. A list that fails explains nothing, and hinders nothing.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import msgspec

from trainwright.api.events import EventType
from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.api.trainjob import FAILED, JobStatus, TrainJob
from trainwright.client import Client, ClientError
from trainwright.clock import Clock
from trainwright.controlloop import Key, key_of
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.trainjobs.events import Events
from trainwright.operator.trainjobs.queueing import Queueing, is_queued
from trainwright.pipeline import Workload
from trainwright.pipeline.reasons import Evidence, Reason, reason_of
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 10.0
"""How long the pods of a job may take to become ready before anybody asks why."""
MAX_PAUSE_SECONDS = 300.0
PER_SECOND = 2.0
"""So many jobs are looked at in a second: in a burst of new TrainJobs there is nothing to explain but the burst."""
FAILED_PODS = 50
WAITING_PODS = 200
POD_GROUP = "PodGroup"
"""What every gang scheduler calls the kind in which it says why the pods of a gang wait."""


class Explained(NamedTuple):
    text: str = ""
    look_again_after: float | None = None


NOTHING = Explained()


class _Look(msgspec.Struct):
    """A job whose pods are not all ready."""

    uid: str
    next_at: float
    jobs: list[JobStatus]
    count: int = 0
    text: str = ""


class Explaining:
    def __init__(self, client: Client, events: Events, clock: Clock, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds
        self._events = events
        self._clock = clock
        self._looks: dict[Key, _Look] = {}
        self._free_at = float("-inf")
        self._queueing = Queueing(client, clock)

    def forget(self, key: Key) -> None:
        self._looks.pop(key, None)

    async def explain(self, job: TrainJob, workload: Workload) -> Explained:
        """Why this job failed or waits, as far as its pods tell."""
        status = workload.status
        if not status.pods or job.is_finished:
            return NOTHING
        if status.end is not None:
            self.forget(key_of(job))
            return await self._explain_failure(job, workload) if status.end.type == FAILED else NOTHING
        if is_queued(job):
            return await self._explain_queue(job, workload)
        if job.is_suspended or status.is_suspended or not _is_waiting(status.jobs):
            self.forget(key_of(job))
            return NOTHING
        return await self._explain_wait(job, workload)

    async def _explain_failure(self, job: TrainJob, workload: Workload) -> Explained:
        pods = await self._pods(job, workload, field_selector="status.phase=Failed", limit=FAILED_PODS)
        reason = reason_of(Evidence(job=_shown(job, failed=True), pods=pods or ()))
        return Explained(await self._told(job, reason, ""))

    async def _explain_queue(self, job: TrainJob, workload: Workload) -> Explained:
        """Why Kueue keeps the job suspended; its queue at least, which costs no request."""
        now = self._clock.now()
        look = self._look_at(job, workload, now)
        if self._is_due(look, now):
            evidence = Evidence(job=_shown(job, suspended=True), queued=await self._queueing.workloads(job))
            look.text = await self._told(job, reason_of(evidence), look.text, type="Normal")
        return Explained(look.text, max(look.next_at, self._free_at) - now)

    def _look_at(self, job: TrainJob, workload: Workload, now: float) -> _Look:
        jobs = workload.status.jobs
        look = self._looks.get(key_of(job))
        if look is None or look.uid != workload.metadata.uid:
            look = self._looks[key_of(job)] = _Look(workload.metadata.uid, now + PATIENCE_SECONDS, jobs)
        elif look.jobs != jobs:  # something moves: what was said may be true no more
            look.jobs, look.count = jobs, 0
            look.next_at = min(look.next_at, now + PATIENCE_SECONDS)
        return look

    def _is_due(self, look: _Look, now: float) -> bool:
        """Whether to look now; then the next time is later, and nobody else's turn for a moment."""
        if now < look.next_at or now < self._free_at:
            return False
        self._free_at = now + 1 / PER_SECOND
        look.next_at = now + min(PATIENCE_SECONDS * 2**look.count, MAX_PAUSE_SECONDS)
        look.count += 1
        return True

    async def _explain_wait(self, job: TrainJob, workload: Workload) -> Explained:
        now = self._clock.now()
        look = self._look_at(job, workload, now)
        if now < look.next_at:
            return Explained(look.text, look.next_at - now)
        if not self._is_due(look, now):
            return Explained(look.text, self._free_at - now)
        pods = await self._pods(job, workload, limit=WAITING_PODS)
        if pods is not None:
            evidence = Evidence(
                job=_shown(job),
                workload=_shown_workload(workload),
                pods=pods,
                pod_groups=await self._pod_groups(job),
                now=self._client.server_time.now(),
            )
            look.text = await self._told(job, reason_of(evidence), look.text)
        return Explained(look.text, look.next_at - now)

    async def _pods(
        self, job: TrainJob, workload: Workload, *, limit: int, field_selector: str | None = None
    ) -> list[Json] | None:
        """The job's pods, or None when they cannot be listed."""
        try:
            listed = await self._client.list(
                PODS,
                job.metadata.namespace,
                label_selector=workload.status.pods,
                field_selector=field_selector,
                at_most=limit,
            )
        except ClientError as error:
            log.debug("the pods of %s/%s cannot be listed: %s", job.metadata.namespace, job.metadata.name, error)
            return None
        return listed.items or []

    async def _pod_groups(self, job: TrainJob) -> list[Json]:
        """The PodGroups of the job, whichever scheduler they are for."""
        found: list[Json] = []
        for name in self._kinds.children_of(job):
            if name.kind != POD_GROUP:
                continue
            try:
                resource = self._kinds.resource_of({"apiVersion": name.api_version, "kind": name.kind})
                found.append(await self._client.get(resource, name.name, job.metadata.namespace))
            except ClientError as error:
                log.debug("%s %s/%s cannot be read: %s", POD_GROUP, job.metadata.namespace, name.name, error)
        return found

    async def _told(self, job: TrainJob, reason: Reason | None, before: str, *, type: EventType = "Warning") -> str:
        """The sentence, told by an event too if it is a new one."""
        if reason is None:
            return ""
        if reason.message != before:
            await self._events.tell(TRAIN_JOBS, job.metadata, reason.code, reason.message, type=type)
        return reason.message


def _is_waiting(jobs: list[JobStatus]) -> bool:
    """Whether a part of the workload has pods that are not ready, or has none at all and nothing else goes on."""
    if any(item.active > item.ready for item in jobs):
        return True
    return bool(jobs) and not any(item.ready or item.succeeded or item.failed or item.suspended for item in jobs)


def _shown(job: TrainJob, *, failed: bool = False, suspended: bool = False) -> Json:
    conditions = [{"type": FAILED, "status": "True", "reason": "", "message": ""}] if failed else []
    metadata = {"name": job.metadata.name, "namespace": job.metadata.namespace, "labels": job.metadata.labels}
    status = {"state": "Pending", "conditions": conditions}
    return {"metadata": metadata, "spec": {"suspend": suspended}, "status": status}


def _shown_workload(workload: Workload) -> Json:
    metadata = {"name": workload.metadata.name, "creationTimestamp": workload.metadata.creation_timestamp}
    jobs = msgspec.to_builtins(workload.status.jobs)
    return {"kind": workload.resource.kind, "metadata": metadata, "status": {"replicatedJobsStatus": jobs}}
