"""What a viewer may change: suspend, resume and delete a TrainJob.

Each is one request with the viewer's own credentials, for the very TrainJob that the page showed (its uid). A new verb
is a row of `VERBS`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from trainwright.api.phases import condition
from trainwright.api.resources import TRAIN_JOBS, Resource
from trainwright.api.times import rfc3339
from trainwright.client.client import Client
from trainwright.client.requests import MERGE_PATCH, DeleteOptions
from trainwright.runs import Asked, RunsHome
from trainwright.schema.jsonobject import Json

FIELD_MANAGER = "trainwright"
BY = "the page"
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class Refused(Exception):
    """The action makes no sense, or no more: the message says why."""


class Change:
    """One action on one TrainJob."""

    def __init__(self, client: Client, namespace: str, name: str, uid: str, home: RunsHome | None) -> None:
        self.client = client
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.home = home

    async def suspend(self) -> None:
        await self._set_suspended(True)

    async def resume(self) -> None:
        await self._set_suspended(False)

    async def delete(self) -> None:
        if self.home is not None:
            self.home.ask_trainjob(self.namespace, self.name, Asked(by=BY, time=rfc3339(time.time())))
        await self.client.delete(TRAIN_JOBS, self.name, self.namespace, DeleteOptions(uid=self.uid))

    async def _set_suspended(self, suspended: bool) -> None:
        job: Json = await self.client.get(TRAIN_JOBS, self.name, self.namespace)
        for end in ("Complete", "Failed"):
            if condition(job, end):
                raise Refused(f"TrainJob {self.name} has ended ({end}); it can be neither suspended nor resumed")
        await self.client.patch(
            TRAIN_JOBS,
            {"metadata": {"uid": self.uid}, "spec": {"suspend": suspended}},
            name=self.name,
            namespace=self.namespace,
            content_type=MERGE_PATCH,
            field_manager=FIELD_MANAGER,
        )


VERBS: Final[dict[str, tuple[str, Callable[[Change], Awaitable[None]]]]] = {
    "suspend": ("patch", Change.suspend),
    "resume": ("patch", Change.resume),
    "delete": ("delete", Change.delete),
}
"""The page's verb, the right that it takes, and what it does."""


async def allowed(client: Client, namespace: str) -> list[str]:
    """The verbs that the API server would let this viewer do to TrainJobs of the namespace."""
    rights = {}
    for right in sorted({right for right, _ in VERBS.values()}):
        attributes = {
            "group": TRAIN_JOBS.group,
            "resource": TRAIN_JOBS.plural,
            "verb": right,
            "namespace": namespace,
        }
        body = {
            "apiVersion": ACCESS_REVIEWS.api_version,
            "kind": ACCESS_REVIEWS.kind,
            "spec": {"resourceAttributes": attributes},
        }
        answer = await client.create(ACCESS_REVIEWS, body)
        rights[right] = bool((answer.get("status") or {}).get("allowed"))
    return [verb for verb, (right, _) in VERBS.items() if rights[right]]
