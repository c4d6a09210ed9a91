"""Whose token is it? Checks a progress report's token, and that its pod belongs to the TrainJob.

The API server itself judges the token (TokenReview): signature, issuer, expiry, audience, and that the pod it is
bound to still exists. Then the pod's owners are followed by uid up to the TrainJob: pod → Job → JobSet → TrainJob, or
through whatever workload a plugin built. A verdict is remembered for a minute, a refusal for a few seconds, so that a
thousand reports cost a few requests. What says of itself that it is for another audience or has expired is refused
without a question, and questions are limited (`reviewing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta, OwnerReference, PartialObjectMetadata
from trainwright.api.resources import JOBS, PODS, TRAIN_JOBS, Resource
from trainwright.client import Client, NotFound
from trainwright.controlloop import Clock
from trainwright.operator.serving.reviewing import Remembered, Reviewing, claims_of, digest

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
GOOD_SECONDS = 60.0
BAD_SECONDS = 5.0
LONGEST_TOKEN = 8192
LONGEST_CHAIN = 5  # owners from a pod to its TrainJob, both included


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    extra: dict[str, list[str]] | None = None


class _ReviewStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: list[str] | None = None


class _TokenReview(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


def audience(namespace: str, name: str) -> str:
    return f"trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"


def bearer(header: str | None) -> str:
    """The token of an Authorization header; "" when it is anything but `Bearer <token>`."""
    words = (header or "").split()
    return words[1] if len(words) == 2 and words[0].lower() == "bearer" else ""


class Tokens:
    """`workloads` gives the kinds that may stand between a TrainJob and its pods, besides Jobs."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        workloads: Callable[[], Iterable[Resource]],
        reviewing: Reviewing | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._workloads = workloads
        self._reviewing = reviewing or Reviewing(clock)
        self._good = Remembered(clock, GOOD_SECONDS)
        self._bad = Remembered(clock, BAD_SECONDS)  # of its own: refusals must not push verdicts out

    async def reporter_of(self, token: str, namespace: str, name: str) -> str:
        """The uid of the TrainJob whose pod the bearer is; "" if it is none. Raises `TooManyReviews`."""
        if not token or len(token) > LONGEST_TOKEN or not self._may_be_meant(token, namespace, name):
            return ""
        key = digest(token, namespace, name)
        if (known := self._good.get(key)) is not None:
            return known
        if self._bad.get(key) is not None:
            return ""
        async with self._reviewing.turn():
            if (known := self._good.get(key)) is not None:  # somebody asked the same meanwhile
                return known
            uid = await self._judge(token, namespace, name)
        (self._good if uid else self._bad).put(key, uid)
        return uid

    def _may_be_meant(self, token: str, namespace: str, name: str) -> bool:
        """What the token says of itself, unproved: whoever lies is found out by the review."""
        claims = claims_of(token)
        if claims is None:
            return False
        return claims.is_for(audience(namespace, name)) and claims.exp > self._client.server_time.now()

    async def _judge(self, token: str, namespace: str, name: str) -> str:
        wanted = audience(namespace, name)
        body: dict[str, Any] = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token, "audiences": [wanted]},
        }
        review: _TokenReview = await self._client.create(TOKEN_REVIEWS, body, decode=_TokenReview)
        status = review.status
        if not status.authenticated or wanted not in (status.audiences or ()):
            return ""
        if not status.user.username.startswith(f"system:serviceaccount:{namespace}:"):
            return ""
        extra = status.user.extra or {}
        pods = extra.get("authentication.kubernetes.io/pod-name") or []
        uids = extra.get("authentication.kubernetes.io/pod-uid") or []
        if len(pods) != 1 or len(uids) != 1:
            return ""
        return await self._belongs(namespace, pods[0], uids[0], name)

    async def _belongs(self, namespace: str, pod: str, uid: str, train_job: str) -> str:
        """Follows controlling owners from the pod up; each step must be the very object that the reference means. The
        TrainJob's uid, or nothing."""
        above = {(it.group, it.kind): it for it in (*self._workloads(), JOBS, TRAIN_JOBS)}
        owner: OwnerReference | None = OwnerReference("v1", "Pod", pod, uid)
        resource: Resource | None = PODS
        for _ in range(LONGEST_CHAIN):
            if owner is None or resource is None or (resource is TRAIN_JOBS and owner.name != train_job):
                return ""
            metadata = await self._look(resource, owner.name, namespace)
            if metadata is None or metadata.uid != owner.uid:
                return ""
            if resource is TRAIN_JOBS:
                return metadata.uid
            owner = metadata.controller
            resource = above.get((owner.api_version.rpartition("/")[0], owner.kind)) if owner is not None else None
        return ""

    async def _look(self, resource: Resource, name: str, namespace: str) -> ObjectMeta | None:
        try:
            found = await self._client.get(resource, name, namespace, decode=PartialObjectMetadata, metadata_only=True)
        except NotFound:
            return None
        return found.metadata
