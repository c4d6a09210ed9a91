"""Whose token is it? Checks a progress report's token, and that its pod belongs to the TrainJob.

The API server itself judges the token (TokenReview): signature, issuer, expiry, audience, and that the pod it is
bound to still exists. Then the pod's owners are followed by uid up to the TrainJob: pod → Job → JobSet → TrainJob, or
through whatever workload a plugin built. A verdict is remembered for a minute, a refusal for a few seconds, so that a
thousand reports cost a few requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trainwright.api.metadata import ObjectMeta, OwnerReference, PartialObjectMetadata
from trainwright.api.resources import JOBS, PODS, TRAIN_JOBS, Resource
from trainwright.client import Client, NotFound
from trainwright.controlloop import Clock

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
GOOD_SECONDS = 60.0
BAD_SECONDS = 5.0
REMEMBERED = 10_000
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

    def __init__(self, client: Client, clock: Clock, workloads: Callable[[], Iterable[Resource]]) -> None:
        self._client = client
        self._clock = clock
        self._workloads = workloads
        self._known: OrderedDict[tuple[str, str, str], tuple[bool, float]] = OrderedDict()

    async def may_report(self, token: str, namespace: str, name: str) -> bool:
        """Whether the bearer is a pod of this TrainJob."""
        if not token or len(token) > LONGEST_TOKEN:
            return False
        key = (token, namespace, name)
        known = self._known.get(key)
        if known is not None and self._clock.now() < known[1]:
            return known[0]
        verdict = await self._judge(token, namespace, name)
        self._known[key] = (verdict, self._clock.now() + (GOOD_SECONDS if verdict else BAD_SECONDS))
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return verdict

    async def _judge(self, token: str, namespace: str, name: str) -> bool:
        wanted = audience(namespace, name)
        body: dict[str, Any] = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token, "audiences": [wanted]},
        }
        review: _TokenReview = await self._client.create(TOKEN_REVIEWS, body, decode=_TokenReview)
        status = review.status
        if not status.authenticated or wanted not in (status.audiences or ()):
            return False
        if not status.user.username.startswith(f"system:serviceaccount:{namespace}:"):
            return False
        extra = status.user.extra or {}
        pods = extra.get("authentication.kubernetes.io/pod-name") or []
        uids = extra.get("authentication.kubernetes.io/pod-uid") or []
        if len(pods) != 1 or len(uids) != 1:
            return False
        return await self._belongs(namespace, pods[0], uids[0], name)

    async def _belongs(self, namespace: str, pod: str, uid: str, train_job: str) -> bool:
        """Follows controlling owners from the pod up; each step must be the very object that the reference means."""
        above = {(it.group, it.kind): it for it in (*self._workloads(), JOBS, TRAIN_JOBS)}
        owner: OwnerReference | None = OwnerReference("v1", "Pod", pod, uid)
        resource: Resource | None = PODS
        for _ in range(LONGEST_CHAIN):
            if owner is None or resource is None or (resource is TRAIN_JOBS and owner.name != train_job):
                return False
            metadata = await self._look(resource, owner.name, namespace)
            if metadata is None or metadata.uid != owner.uid:
                return False
            if resource is TRAIN_JOBS:
                return True
            owner = metadata.controller
            resource = above.get((owner.api_version.rpartition("/")[0], owner.kind)) if owner is not None else None
        return False

    async def _look(self, resource: Resource, name: str, namespace: str) -> ObjectMeta | None:
        try:
            found = await self._client.get(resource, name, namespace, decode=PartialObjectMetadata, metadata_only=True)
        except NotFound:
            return None
        return found.metadata
