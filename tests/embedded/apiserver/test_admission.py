"""Webhooks are called over HTTPS exactly as configured: a real webhook server with a certificate of the cluster."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from trainwright.embedded.apiserver import ApiServer
from trainwright.embedded.apiserver.access.tls import server_context
from trainwright.schema.jsonobject import Json

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"


class Webhook:
    """Answers every review with what `decide` says, and remembers the requests."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.decide: Callable[[Json], Json] = lambda request: {"allowed": True}
        self.stalls = False  # does not answer while the test runs
        self.over = asyncio.Event()
        self.meanwhile: list[Callable[[], Awaitable[None]]] = []  # what happens before the next answers, one each
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        review = await request.json()
        self.requests.append(review["request"])
        if self.stalls:
            await self.over.wait()
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        response = {"uid": review["request"]["uid"], **self.decide(review["request"])}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


@pytest.fixture
async def webhook(server: ApiServer) -> AsyncIterator[Webhook]:
    hook = Webhook()
    certificate = server.issue_certificate("webhook", ["127.0.0.1"])
    runner = web.ServerRunner(web.Server(hook.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(certificate))
    await site.start()
    assert site._server is not None
    hook.url = f"https://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/check"  # type: ignore[attr-defined]
    yield hook
    hook.over.set()
    await runner.cleanup()


def configuration(server: ApiServer, hook: Webhook, kind: str, **more: Any) -> Json:
    bundle = base64.b64encode(server.ca_file.read_bytes()).decode()
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    entry = {
        "name": "check.example.org",
        "clientConfig": {"url": hook.url, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "check"},
        "webhooks": [entry],
    }


def config_map(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


async def install(http: Any, server: ApiServer, hook: Webhook, kind: str, **more: Any) -> None:
    plural = f"{kind.lower()}webhookconfigurations"
    status, answer = await http("POST", f"{GROUP}/{plural}", configuration(server, hook, kind, **more))
    assert status == 201, answer


async def test_a_refusal_reaches_the_client_with_the_webhooks_words(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await install(http, server, webhook, "Validating")
    webhook.decide = lambda request: {
        "allowed": False,
        "status": {"code": 403, "message": "not today", "reason": "Forbidden"},
    }
    status, answer = await http("POST", CONFIG_MAPS, config_map("c1"))
    assert status == 403
    assert answer["message"] == 'admission webhook "check.example.org" denied the request: not today'
    assert (await http("GET", f"{CONFIG_MAPS}/c1"))[0] == 404


async def test_the_review_says_who_does_what_to_which_object(http: Any, server: ApiServer, webhook: Webhook) -> None:
    await install(http, server, webhook, "Validating")
    await http("POST", f"{CONFIG_MAPS}?fieldManager=me", config_map("c1"))
    await http.merge(f"{CONFIG_MAPS}/c1", {"data": {"a": "2"}})
    await http("DELETE", f"{CONFIG_MAPS}/c1")
    create, update, delete = webhook.requests
    assert [r["operation"] for r in webhook.requests] == ["CREATE", "UPDATE", "DELETE"]
    assert create["object"]["data"] == {"a": "1"}
    assert create["oldObject"] is None
    assert create["options"]["fieldManager"] == "me"
    assert create["userInfo"]["groups"] == ["system:masters", "system:authenticated"]
    assert (update["object"]["data"], update["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
    assert delete["object"] is None
    assert delete["oldObject"]["data"] == {"a": "2"}
    assert delete["name"] == "c1"
    assert delete["namespace"] == "default"


async def test_a_mutating_webhook_changes_the_object_and_warns(http: Any, server: ApiServer, webhook: Webhook) -> None:
    await install(http, server, webhook, "Mutating")
    patch = base64.b64encode(json.dumps([{"op": "add", "path": "/data/added", "value": "yes"}]).encode()).decode()
    webhook.decide = lambda request: {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": patch,
        "warnings": ['a "quoted" warning'],
    }
    status, made = await http("POST", CONFIG_MAPS, config_map("c1"))
    assert status == 201
    assert made["data"] == {"a": "1", "added": "yes"}
    assert http.headers["Warning"] == '299 - "a \\"quoted\\" warning"'
    _, stored = await http("GET", f"{CONFIG_MAPS}/c1")
    assert stored["data"]["added"] == "yes"


@pytest.mark.parametrize(("policy", "expected"), [("Fail", 500), ("Ignore", 201)])
async def test_the_failure_policy_decides_when_the_webhook_is_slow(
    http: Any, server: ApiServer, webhook: Webhook, policy: str, expected: int
) -> None:
    await install(http, server, webhook, "Validating", failurePolicy=policy, timeoutSeconds=1)
    webhook.stalls = True
    status, answer = await http("POST", CONFIG_MAPS, config_map("c1"))
    assert status == expected
    if expected == 500:
        assert 'failed calling webhook "check.example.org"' in answer["message"]
        assert "deadline" in answer["message"]


async def test_selectors_and_match_conditions_leave_requests_out(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await install(
        http,
        server,
        webhook,
        "Validating",
        objectSelector={"matchLabels": {"checked": "yes"}},
        matchConditions=[{"name": "not-skipped", "expression": "object.metadata.name != 'skipped'"}],
    )
    for name, labels in (("plain", {}), ("skipped", {"checked": "yes"}), ("judged", {"checked": "yes"})):
        assert (await http("POST", CONFIG_MAPS, config_map(name, **labels)))[0] == 201
    assert [request["name"] for request in webhook.requests] == ["judged"]


async def test_a_namespace_selector_looks_at_the_namespaces_labels(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await install(http, server, webhook, "Validating", namespaceSelector={"matchLabels": {"team": "red"}})
    await http("POST", "/api/v1/namespaces", {"metadata": {"name": "red", "labels": {"team": "red"}}})
    await http("POST", CONFIG_MAPS, config_map("c1"))
    await http("POST", "/api/v1/namespaces/red/configmaps", config_map("c1"))
    assert [request["namespace"] for request in webhook.requests] == ["red"]


async def test_a_service_is_reached_through_the_resolver(http: Any, server: ApiServer, webhook: Webhook) -> None:
    service = {"namespace": "default", "name": "nowhere", "path": "/check"}
    bundle = base64.b64encode(server.ca_file.read_bytes()).decode()
    await install(http, server, webhook, "Validating", clientConfig={"service": service, "caBundle": bundle})
    status, answer = await http("POST", CONFIG_MAPS, config_map("c1"))
    assert status == 500
    assert 'service "nowhere" in namespace "default" has no known address' in answer["message"]


async def test_a_bad_match_condition_is_refused_with_the_configuration(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    bad = configuration(server, webhook, "Validating", matchConditions=[{"name": "x", "expression": "object."}])
    status, answer = await http("POST", f"{GROUP}/validatingwebhookconfigurations", bad)
    assert status == 422
    assert "matchConditions[0].expression" in answer["message"]


async def test_a_dry_run_is_reviewed_and_not_stored(http: Any, server: ApiServer, webhook: Webhook) -> None:
    await install(http, server, webhook, "Validating")
    status, _ = await http("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("c1"))
    assert status == 201
    assert webhook.requests[0]["dryRun"] is True
    assert (await http("GET", f"{CONFIG_MAPS}/c1"))[0] == 404


async def test_a_patch_that_a_webhooks_wait_made_stale_is_computed_anew(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await http("POST", CONFIG_MAPS, config_map("c1"))
    await install(http, server, webhook, "Validating")

    async def another_write() -> None:
        assert (await http.merge(f"{CONFIG_MAPS}/c1", {"data": {"other": "2"}}))[0] == 200

    webhook.meanwhile = [another_write]
    status, answer = await http.merge(f"{CONFIG_MAPS}/c1", {"data": {"mine": "3"}})
    assert status == 200
    assert answer["data"] == {"a": "1", "other": "2", "mine": "3"}
    assert len(webhook.requests) == 3  # the patch, the other write, the patch again


async def test_an_update_that_a_webhooks_wait_made_stale_is_a_conflict(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await http("POST", CONFIG_MAPS, config_map("c1"))
    await install(http, server, webhook, "Validating")

    async def another_write() -> None:
        assert (await http.merge(f"{CONFIG_MAPS}/c1", {"data": {"other": "2"}}))[0] == 200

    webhook.meanwhile = [another_write]
    status, answer = await http("PUT", f"{CONFIG_MAPS}/c1", {"metadata": {"name": "c1"}, "data": {"mine": "3"}})
    assert (status, answer["reason"]) == (409, "Conflict")
    assert (await http("GET", f"{CONFIG_MAPS}/c1"))[1]["data"] == {"a": "1", "other": "2"}


async def test_of_two_creates_that_wait_for_a_webhook_one_is_told_that_the_name_is_taken(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await install(http, server, webhook, "Validating")

    async def another_create() -> None:
        assert (await http("POST", CONFIG_MAPS, config_map("c1")))[0] == 201

    webhook.meanwhile = [another_create]
    status, answer = await http("POST", CONFIG_MAPS, config_map("c1"))
    assert (status, answer["reason"]) == (409, "AlreadyExists")


async def test_a_deletion_judges_the_object_as_it_is_after_the_webhooks_wait(
    http: Any, server: ApiServer, webhook: Webhook
) -> None:
    await http("POST", CONFIG_MAPS, config_map("c1"))
    await install(http, server, webhook, "Validating")

    async def hold() -> None:
        patch = {"metadata": {"finalizers": ["example.com/hold"]}}
        assert (await http.merge(f"{CONFIG_MAPS}/c1", patch))[0] == 200

    webhook.meanwhile = [hold]
    assert (await http("DELETE", f"{CONFIG_MAPS}/c1"))[0] == 200
    status, answer = await http("GET", f"{CONFIG_MAPS}/c1")
    assert status == 200
    assert answer["metadata"]["deletionTimestamp"]
