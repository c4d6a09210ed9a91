"""The webhooks over real HTTP: AdmissionReview in and out, on the reference's paths, with its words."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, CONTROLLER_REVISIONS
from trainwright.client import Client
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.operator.admission import webhooks
from trainwright.operator.admission.decisions import Admission
from trainwright.operator.figures.metrics import OperatorMetrics
from trainwright.operator.runtimes.revisions import content_of, name_of
from trainwright.operator.serving.listening import Server
from trainwright.operator.stores.kinds import Kinds
from trainwright.operator.stores.views import Views
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from trainwright.testing.faults import FaultyTransport
from unit.operator.world import World, runtime, train_job


class Webhooks:
    def __init__(self, world: World, metrics: OperatorMetrics, session: aiohttp.ClientSession, port: int) -> None:
        self.world = world
        self.metrics = metrics
        self._session = session
        self._url = f"http://127.0.0.1:{port}"

    async def post(self, path: str, body: Any) -> tuple[int, Json]:
        async with self._session.post(self._url + path + "?timeout=10s", data=body) as answer:
            return answer.status, await answer.json()

    async def review(self, path: str, new: Json, old: Json | None = None) -> Json:
        request = {
            "uid": "the-uid",
            "operation": "UPDATE" if old else "CREATE",
            "namespace": "ns",
            "object": new,
            "oldObject": old,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        code, answer = await self.post(path, json.dumps(body))
        assert code == 200
        assert answer["response"]["uid"] == "the-uid"
        response: Json = answer["response"]
        return response


@asynccontextmanager
async def serving(world: World, client: Client) -> AsyncIterator[Webhooks]:
    metrics = OperatorMetrics()
    app = webhooks.application(Admission(client, Views(), Kinds(load(discovered={}))), metrics)
    async with Server(app, "127.0.0.1:0") as server, aiohttp.ClientSession() as session:
        yield Webhooks(world, metrics, session, server.port)


@pytest.fixture
async def hooks() -> AsyncIterator[Webhooks]:
    async with World(runtimes=[runtime(torch={})], start=False) as world:
        async with serving(world, world.server.client) as hooks:
            yield hooks


def patched(body: Json, response: Json) -> list[Json]:
    assert response["patchType"] == "JSONPatch"
    operations: list[Json] = json.loads(base64.b64decode(response["patch"]))
    return operations


async def test_a_good_job_is_admitted(hooks: Webhooks) -> None:
    assert await hooks.review(webhooks.VALIDATE_TRAIN_JOB, train_job()) == {"uid": "the-uid", "allowed": True}
    counted = {"webhook": webhooks.VALIDATE_TRAIN_JOB, "code": "200"}
    assert hooks.metrics.registry.get_sample_value("controller_runtime_webhook_requests_total", counted) == 1


async def test_a_refusal_is_forbidden_with_the_plugins_words(hooks: Webhooks) -> None:
    job = train_job(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    response = await hooks.review(webhooks.VALIDATE_TRAIN_JOB, job)
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert "must not have reserved envs, invalid envs configured: [PET_NNODES]" in response["status"]["message"]


async def test_no_spec_and_an_unknown_kind_are_unsupported_runtimes(hooks: Webhooks) -> None:
    empty = {"metadata": {"name": "job"}}
    response = await hooks.review(webhooks.VALIDATE_TRAIN_JOB, empty)
    assert response["status"]["message"] == "unsupported runtime: "
    job = train_job()
    job["spec"]["runtimeRef"]["kind"] = "Foo"
    response = await hooks.review(webhooks.VALIDATE_TRAIN_JOB, job)
    assert response["status"]["message"] == "unsupported runtime: Foo.trainer.kubeflow.org"


async def test_a_missing_runtime_is_told_in_the_references_words(hooks: Webhooks) -> None:
    response = await hooks.review(webhooks.VALIDATE_TRAIN_JOB, train_job(runtime="nope"))
    assert response["status"]["message"] == (
        'spec.RuntimeRef: Invalid value: {"name":"nope","apiGroup":"trainer.kubeflow.org",'
        '"kind":"ClusterTrainingRuntime"}: ClusterTrainingRuntime.trainer.kubeflow.org "nope" not found: '
        "specified clusterTrainingRuntime must be created before the TrainJob is created"
    )


@pytest.mark.parametrize("why", ["finished", "being deleted", "unchanged"])
async def test_without_its_runtime_a_job_can_still_be_changed_where_the_runtime_does_not_matter(
    hooks: Webhooks, why: str
) -> None:
    await hooks.world.remove(CLUSTER_TRAINING_RUNTIMES, "it")
    old, new = train_job(), train_job(suspend=True)
    if why == "finished":
        end = {"type": "Complete", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "x"}
        old["status"] = new["status"] = {"conditions": [end]}
    elif why == "being deleted":
        new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    else:
        new = train_job()
        new["metadata"]["labels"] = {"a": "b"}
    assert (await hooks.review(webhooks.VALIDATE_TRAIN_JOB, new, old))["allowed"]


async def test_once_bound_a_job_is_judged_by_its_revision_and_not_by_the_runtime_of_today(hooks: Webhooks) -> None:
    content = content_of(runtime(torch={}))
    await hooks.world.add(
        CONTROLLER_REVISIONS, {"metadata": {"name": name_of(content)}, "data": content, "revision": 1}
    )
    await hooks.world.remove(CLUSTER_TRAINING_RUNTIMES, "it")
    old, new = train_job(), train_job(suspend=True)
    old["status"] = {"runtimeRevision": name_of(content)}
    assert (await hooks.review(webhooks.VALIDATE_TRAIN_JOB, new, old))["allowed"]
    new["spec"]["trainer"] = {"env": [{"name": "PET_NNODES", "value": "1"}]}
    assert not (await hooks.review(webhooks.VALIDATE_TRAIN_JOB, new, old))["allowed"]


async def test_an_api_server_that_does_not_answer_is_an_internal_error_of_the_field(hooks: Webhooks) -> None:
    hooks.world.refuse(500, "etcd is away")
    response = await hooks.review(webhooks.VALIDATE_TRAIN_JOB, train_job())
    assert "Internal error: etcd is away" in response["status"]["message"]


async def test_patches_get_the_time_and_a_text_becomes_a_number(hooks: Webhooks) -> None:
    job = train_job(runtimePatches=[{"manager": "a/b"}], trainer={"numProcPerNode": "2"})
    operations = patched(job, await hooks.review(webhooks.DEFAULT_TRAIN_JOB, job))
    by_path = {operation["path"]: operation for operation in operations}
    assert by_path["/spec/trainer"]["value"] == {"numProcPerNode": 2}
    assert by_path["/spec/runtimePatches"]["value"][0]["time"].endswith("Z")


async def test_nothing_to_default_is_no_patch(hooks: Webhooks) -> None:
    assert await hooks.review(webhooks.DEFAULT_TRAIN_JOB, train_job()) == {"uid": "the-uid", "allowed": True}


async def test_runtimes_are_judged_on_create_and_the_clusters_kind_on_update_too(hooks: Webhooks) -> None:
    bad = runtime()
    bad["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2
    namespaced = {**bad, "kind": "TrainingRuntime"}
    for path, body, old, allowed in (
        (webhooks.VALIDATE_CLUSTER_TRAINING_RUNTIME, bad, None, False),
        (webhooks.VALIDATE_CLUSTER_TRAINING_RUNTIME, bad, runtime(), False),
        (webhooks.VALIDATE_TRAINING_RUNTIME, namespaced, None, False),
        (webhooks.VALIDATE_TRAINING_RUNTIME, namespaced, namespaced, True),
    ):
        assert (await hooks.review(path, body, old))["allowed"] is allowed


async def test_a_deprecated_runtime_is_admitted_with_a_warning(hooks: Webhooks) -> None:
    body = runtime()
    body["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    response = await hooks.review(webhooks.VALIDATE_CLUSTER_TRAINING_RUNTIME, body)
    assert response["allowed"]
    assert response["warnings"][0].startswith('ClusterTrainingRuntime "it" is deprecated')


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"<html>", b'{"request": {}}'])
async def test_what_is_no_review_is_refused_and_said_so(hooks: Webhooks, body: bytes) -> None:
    code, answer = await hooks.post(webhooks.VALIDATE_TRAIN_JOB, body)
    assert code == 400
    assert "not an AdmissionReview" in answer["response"]["status"]["message"]


class Explodes(FaultyTransport):
    async def send(self, request: Request, *, deadline: float) -> Answer:
        raise ZeroDivisionError("a bug")


async def test_a_fault_of_ours_is_an_answer_and_not_a_time_out(hooks: Webhooks) -> None:
    async with serving(hooks.world, Client(Explodes(hooks.world.server.faults))) as broken:
        response = await broken.review(webhooks.VALIDATE_TRAIN_JOB, train_job())
    assert (response["allowed"], response["status"]["code"]) == (False, 500)
