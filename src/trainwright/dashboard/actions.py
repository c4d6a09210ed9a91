"""What a viewer may change: suspend, resume, scale and delete a TrainJob.

Each is one request with the viewer's own credentials, for the very TrainJob that the page showed (its uid). A new verb
is a row of `VERBS`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

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

    def __init__(
        self, client: Client, namespace: str, name: str, uid: str, home: RunsHome | None, nodes: int | None = None
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.home = home
        self.nodes = nodes
        """How many nodes to scale to."""

    async def suspend(self) -> None:
        await self._set_suspended(True)

    async def resume(self) -> None:
        await self._set_suspended(False)

    async def delete(self) -> None:
        if self.home is not None:
            self.home.ask_trainjob(self.namespace, self.name, Asked(by=BY, time=rfc3339(time.time())))
        await self.client.delete(TRAIN_JOBS, self.name, self.namespace, DeleteOptions(uid=self.uid))

    async def scale(self) -> None:
        elastic = ((await self._living()).get("status") or {}).get("elastic")
        if not elastic:
            raise Refused(f"TrainJob {self.name} is not elastic: its number of nodes stays as it is")
        least, most = elastic.get("minNodes"), elastic.get("maxNodes")
        if self.nodes is None or not least <= self.nodes <= most:
            raise Refused(f"TrainJob {self.name} trains on {least} to {most} nodes")
        await self.client.patch(
            TRAIN_JOBS,
            {"metadata": {"uid": self.uid}, "spec": {"replicas": self.nodes}},
            name=self.name,
            namespace=self.namespace,
            subresource="scale",
            field_manager=FIELD_MANAGER,
        )

    async def _living(self) -> Json:
        job: Json = await self.client.get(TRAIN_JOBS, self.name, self.namespace)
        for end in ("Complete", "Failed"):
            if condition(job, end):
                raise Refused(f"TrainJob {self.name} has ended ({end}); nothing of it can be changed")
        return job

    async def _set_suspended(self, suspended: bool) -> None:
        await self._living()
        await self.client.patch(
            TRAIN_JOBS,
            {"metadata": {"uid": self.uid}, "spec": {"suspend": suspended}},
            name=self.name,
            namespace=self.namespace,
            content_type=MERGE_PATCH,
            field_manager=FIELD_MANAGER,
        )


class Verb(NamedTuple):
    """A verb of the page: the right that it takes, on the TrainJob or a subresource of it, and what it does."""

    right: str
    subresource: str
    carry_out: Callable[[Change], Awaitable[None]]


VERBS: Final = {
    "suspend": Verb("patch", "", Change.suspend),
    "resume": Verb("patch", "", Change.resume),
    "scale": Verb("patch", "scale", Change.scale),
    "delete": Verb("delete", "", Change.delete),
}


async def allowed(client: Client, namespace: str) -> list[str]:
    """The verbs that the API server would let this viewer do to TrainJobs of the namespace."""
    rights = {}
    for right, subresource in sorted({(verb.right, verb.subresource) for verb in VERBS.values()}):
        attributes = {
            "group": TRAIN_JOBS.group,
            "resource": TRAIN_JOBS.plural,
            "subresource": subresource,
            "verb": right,
            "namespace": namespace,
        }
        body = {
            "apiVersion": ACCESS_REVIEWS.api_version,
            "kind": ACCESS_REVIEWS.kind,
            "spec": {"resourceAttributes": attributes},
        }
        answer = await client.create(ACCESS_REVIEWS, body)
        rights[right, subresource] = bool((answer.get("status") or {}).get("allowed"))
    return [name for name, verb in VERBS.items() if rights[verb.right, verb.subresource]]
