"""Why Kueue holds a TrainJob back: its Workload, where the operator's role allows it to be read.

In: a suspended TrainJob with the label of a queue. Out: Kueue's Workloads of it, or none. The shipped role does not
allow it: who wants it binds one more. Whether it is allowed is asked once an hour, and only when a job is queued.
"""

from __future__ import annotations

import logging

from trainwright.api.resources import Resource
from trainwright.api.trainjob import TrainJob
from trainwright.client import Client, ClientError
from trainwright.clock import Clock
from trainwright.pipeline.reasons.queues import QUEUE_LABEL
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)

WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload")
REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
JOB_UID = "kueue.x-k8s.io/job-uid"
ASK_SECONDS = 3600.0


def is_queued(job: TrainJob) -> bool:
    return job.is_suspended and bool(job.metadata.label(QUEUE_LABEL))


class Queueing:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._allowed: bool = False
        self._ask_at = float("-inf")

    async def workloads(self, job: TrainJob) -> list[Json]:
        """Kueue's Workloads of this job; empty when there are none or they may not be read."""
        if not await self._is_allowed():
            return []
        try:
            listed = await self._client.list(
                WORKLOADS, job.metadata.namespace, label_selector=f"{JOB_UID}={job.metadata.uid}", at_most=5
            )
        except ClientError as error:
            log.debug("Kueue's Workload of %s cannot be read: %s", job.metadata.name, error)
            self._allowed = False
            return []
        return listed.items or []

    async def _is_allowed(self) -> bool:
        if self._clock.now() >= self._ask_at:
            self._ask_at = self._clock.now() + ASK_SECONDS
            attributes = {"group": WORKLOADS.group, "resource": WORKLOADS.plural, "verb": "list"}
            body = {
                "apiVersion": REVIEWS.api_version,
                "kind": REVIEWS.kind,
                "spec": {"resourceAttributes": attributes},
            }
            try:
                review: Json = await self._client.create(REVIEWS, body)
                self._allowed = bool((review.get("status") or {}).get("allowed"))
            except ClientError:
                self._allowed = False
        return self._allowed
