"""Where a job stands in its queue: asked of Kueue's visibility API, and no matter whether that answers."""

from __future__ import annotations

import json

import pytest

from trainwright.client import Client
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.dashboard.evidence import Gathering
from trainwright.pipeline.reasons import reason_of
from trainwright.schema.jsonobject import Json

JOB: Json = {
    "metadata": {"name": "job", "namespace": "ns", "uid": "u", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
    "spec": {"suspend": True},
    "status": {"state": "Suspended"},
}
SHORT = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "2 more cpu needed"}
WORKLOAD = {
    "metadata": {"name": "w", "ownerReferences": [{"uid": "u"}]},
    "spec": {"queueName": "team"},
    "status": {"conditions": [SHORT]},
}
PLACE = {
    "metadata": {"name": "w", "namespace": "ns"},
    "priority": 0,
    "localQueueName": "team",
    "positionInClusterQueue": 6,
    "positionInLocalQueue": 1,
}


class Cluster:
    """An API server with Kueue; its visibility API is served in one version, or in none."""

    def __init__(self, version: str, code: int = 404) -> None:
        self._version = version
        self._code = code
        self.asked: list[str] = []

    async def send(self, request: Request, *, deadline: float) -> Answer:
        self.asked.append(request.path)
        if request.path.endswith("/trainjobs/job"):
            return _answer(JOB)
        if request.path.endswith("/workloads"):
            return _answer({"metadata": {}, "items": [WORKLOAD]})
        if "visibility" in request.path:
            if self._version and f"/{self._version}/namespaces/ns/localqueues/team/pendingworkloads" in request.path:
                return _answer({"kind": "PendingWorkloadsSummary", "items": [PLACE]})
            return Answer(self._code, {}, b'{"kind":"Status","message":"no"}')
        return _answer({"metadata": {}, "items": None})

    async def open(self) -> None: ...
    async def close(self) -> None: ...


def _answer(body: Json) -> Answer:
    return Answer(200, {}, json.dumps(body).encode())


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_why_tells_the_place_in_the_queue(version: str) -> None:
    gathered = await Gathering(Client(Cluster(version)), "ns", "job").gather()  # type: ignore[arg-type]
    assert gathered is not None
    reason = reason_of(gathered.evidence)
    assert reason is not None
    assert reason.code == "KueueQuota"
    assert reason.details == ('number 2 in the queue "team", number 7 in its ClusterQueue',)


@pytest.mark.parametrize("code", [403, 404, 503])
async def test_without_the_visibility_api_the_reason_is_the_same(code: int) -> None:
    gathered = await Gathering(Client(Cluster("", code)), "ns", "job").gather()  # type: ignore[arg-type]
    assert gathered is not None
    reason = reason_of(gathered.evidence)
    assert reason is not None
    assert (reason.code, reason.details) == ("KueueQuota", ())


async def test_a_job_that_is_in_no_queue_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JOB["spec"], "suspend", False)
    cluster = Cluster("v1beta1")
    assert await Gathering(Client(cluster), "ns", "job").gather() is not None  # type: ignore[arg-type]
    assert not [path for path in cluster.asked if "kueue" in path]
