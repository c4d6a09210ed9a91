"""Probes, metrics and tokens: who gets an answer, and how many requests the check takes."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from trainwright.api.resources import JOB_SETS
from trainwright.client import Client
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop import VirtualClock
from trainwright.http.application import Application
from trainwright.operator.serving.endpoints import health_application, metrics_application
from trainwright.operator.serving.listening import Server
from trainwright.operator.serving.tokens import Tokens, audience


@asynccontextmanager
async def serving(app: Application) -> AsyncIterator[str]:
    async with Server(app, "127.0.0.1:0") as server:
        yield f"http://127.0.0.1:{server.port}"


async def fetch(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_a_server_takes_over_a_socket_that_is_bound_already() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        async with Server(health_application(lambda: ""), listener) as server:
            assert server.port == listener.getsockname()[1]
            assert await fetch(f"http://127.0.0.1:{server.port}/healthz") == (200, "ok")


async def test_alive_from_the_start_and_ready_when_nothing_is_missing() -> None:
    missing = "certificates are not ready"
    async with serving(health_application(lambda: missing)) as url:
        assert await fetch(f"{url}/healthz") == (200, "ok")
        assert await fetch(f"{url}/readyz") == (500, "certificates are not ready")
        missing = ""
        assert await fetch(f"{url}/readyz") == (200, "ok")


API_VERSIONS = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "TrainJob": "trainer.kubeflow.org/v1alpha1"}


class Reviewer:
    """An API server that knows two tokens, one of which may scrape; and a pod, its owners, and nothing else."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.allowed = {("scraper", "/metrics"), ("platform", "/debug/stacks"), ("platform", "/debug/profile")}
        self.fails = False
        self.owners = {
            "pods/p": ("Job", "j", "uid-j"),
            "jobs/j": ("JobSet", "job", "uid-s"),
            "jobsets/job": ("TrainJob", "job", "uid-t"),
            "trainjobs/job": None,
        }
        self.uids = {"pods/p": "uid-p", "jobs/j": "uid-j", "jobsets/job": "uid-s", "trainjobs/job": "uid-t"}

    async def send(self, request: Request, *, deadline: float) -> Answer:
        what = "/".join(request.path.split("/")[-2:]) if request.method == "GET" else request.path.split("/")[-1]
        self.asked.append(what)
        if self.fails:
            return Answer(500, {}, b"{}")
        body = json.loads(request.body) if request.body else {}
        if what == "tokenreviews":
            return _json(self._token(body["spec"]))
        if what == "subjectaccessreviews":
            spec = body["spec"]
            asked = spec["nonResourceAttributes"]
            assert asked["verb"] == "get"
            return _json({"status": {"allowed": (spec["user"], asked["path"]) in self.allowed}})
        if what not in self.uids:
            details = {"name": what.split("/")[1]}
            status = {"kind": "Status", "code": 404, "reason": "NotFound", "details": details}
            return Answer(404, {}, json.dumps(status).encode())
        metadata: dict[str, Any] = {"name": what.split("/")[1], "uid": self.uids[what]}
        if owner := self.owners[what]:
            kind, name, uid = owner
            metadata["ownerReferences"] = [
                {"apiVersion": API_VERSIONS[kind], "kind": kind, "name": name, "uid": uid, "controller": True}
            ]
        return _json({"metadata": metadata})

    def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
        token = spec["token"].rpartition(".")[2]  # the signature says who it is
        if token not in ("scraper", "stranger", "platform", "pod"):
            return {"status": {"authenticated": False}}
        extra = {
            "authentication.kubernetes.io/pod-name": ["p"],
            "authentication.kubernetes.io/pod-uid": ["uid-p"],
        }
        user = {"username": token if token != "pod" else "system:serviceaccount:ns:default", "extra": extra}
        return {"status": {"authenticated": True, "user": user, "audiences": spec.get("audiences", [])}}

    async def open(self) -> None: ...
    async def close(self) -> None: ...


def _json(body: dict[str, Any]) -> Answer:
    return Answer(201, {}, json.dumps(body).encode())


def counted_once() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("c_total", "Things", registry=registry).inc()
    return registry


@pytest.mark.parametrize(
    ("accept", "content_type", "said"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", "c_total 1.0\n"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0", "# EOF\n"),
        ("application/openmetrics-text; version=one", "application/openmetrics-text; version=1.0.0", "# EOF\n"),
    ],
)
async def test_a_scrape_is_answered_in_the_format_it_accepts(accept: str, content_type: str, said: str) -> None:
    async with (
        serving(metrics_application(counted_once(), None)) as url,
        aiohttp.ClientSession(headers={"Accept": accept}) as session,
        session.get(f"{url}/metrics") as answer,
    ):
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(content_type)
        assert said in await answer.text()


@pytest.mark.parametrize(("token", "code"), [("", 401), ("nobody", 401), ("stranger", 403), ("scraper", 200)])
async def test_with_authentication_only_those_who_may_scrape_do(token: str, code: int) -> None:
    reviewer = Reviewer()
    async with serving(metrics_application(counted_once(), Client(reviewer))) as url:  # type: ignore[arg-type]
        found, text = await fetch(f"{url}/metrics", token)
        assert found == code
        assert ("c_total 1.0" in text) == (code == 200)
        asked = len(reviewer.asked)
        assert (await fetch(f"{url}/metrics", token))[0] == code
        assert len(reviewer.asked) == asked  # remembered
        reviewer.fails = True
        if token:
            assert (await fetch(f"{url}/metrics", f"{token}-another"))[0] == 500


@pytest.mark.parametrize("path", ["/debug/stacks", "/debug/profile?seconds=1"])
async def test_stacks_and_profiles_are_for_those_whom_the_api_server_lets_get_their_path(path: str) -> None:
    async with serving(metrics_application(counted_once(), Client(Reviewer()))) as url:  # type: ignore[arg-type]
        assert (await fetch(f"{url}{path}"))[0] == 401
        assert (await fetch(f"{url}{path}", "scraper"))[0] == 403, "metrics alone"
        assert (await fetch(f"{url}{path}", "platform"))[0] == 200
        assert (await fetch(f"{url}/metrics", "platform"))[0] == 403


@pytest.mark.parametrize("path", ["/debug/stacks", "/debug/profile"])
async def test_without_authentication_there_are_no_stacks_and_no_profiles(path: str) -> None:
    async with serving(metrics_application(counted_once(), None)) as url:
        code, said = await fetch(f"{url}{path}")
        assert (code, "metrics.auth.enabled" in said) == (403, True)


async def test_stacks_name_the_task_that_waits_and_where() -> None:
    never = asyncio.Event()

    async def waits_for_ever() -> None:
        await never.wait()

    task = asyncio.create_task(waits_for_ever(), name="the-one-that-hangs")
    await asyncio.sleep(0)
    async with serving(metrics_application(counted_once(), Client(Reviewer()))) as url:  # type: ignore[arg-type]
        _, said = await fetch(f"{url}/debug/stacks", "platform")
    task.cancel()
    _, _, after = said.partition("task the-one-that-hangs\n")
    first, second = after.splitlines()[:2]
    assert "waits_for_ever (" in first
    assert "Event.wait (" in second
    assert "thread MainThread" in said


async def test_a_profile_shows_what_the_event_loop_is_busy_with() -> None:
    def spin_the_wheel(end: float) -> None:
        while time.monotonic() < end:
            sum(range(1000))

    async def busy() -> None:
        while True:
            spin_the_wheel(time.monotonic() + 0.02)
            await asyncio.sleep(0)

    task = asyncio.create_task(busy())
    async with serving(metrics_application(counted_once(), Client(Reviewer()))) as url:  # type: ignore[arg-type]
        first = asyncio.create_task(fetch(f"{url}/debug/profile?seconds=2", "platform"))
        await asyncio.sleep(0.5)
        assert (await fetch(f"{url}/debug/profile?seconds=2", "platform"))[0] == 429, "one at a time"
        code, said = await first
        assert (await fetch(f"{url}/debug/profile?seconds=3600", "platform"))[0] == 400
        assert (await fetch(f"{url}/debug/profile?seconds=soon", "platform"))[0] == 400
    task.cancel()
    assert code == 200
    stack, _, count = said.splitlines()[0].rpartition(" ")
    assert stack.endswith("spin_the_wheel")
    assert int(count) > 10


class Scene:
    def __init__(self) -> None:
        self.server = Reviewer()
        self.clock = VirtualClock()
        self.tokens = Tokens(Client(self.server), self.clock, lambda: [JOB_SETS])  # type: ignore[arg-type]

    async def judge(self, token: str | None = None) -> bool:
        claims = {"aud": [audience("ns", "job")], "exp": 4_000_000_000}
        payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        shown = token if token == "" else f"x.{payload}.{token or 'pod'}"
        return bool(await self.tokens.reporter_of(shown, "ns", "job"))


async def test_the_token_of_a_pod_of_the_job_is_good_and_remembered_for_a_minute() -> None:
    scene = Scene()
    assert await scene.judge()
    asked = len(scene.server.asked)
    assert await scene.judge()
    assert len(scene.server.asked) == asked
    await scene.clock.advance(61)
    assert await scene.judge()
    assert len(scene.server.asked) > asked


async def test_a_workload_of_another_kind_leads_to_the_job_too() -> None:
    scene = Scene()
    scene.server.owners["jobs/j"] = ("TrainJob", "job", scene.server.uids["trainjobs/job"])
    assert await scene.judge()


async def test_a_kind_that_no_plugin_builds_breaks_the_chain() -> None:
    scene = Scene()
    scene.tokens = Tokens(Client(scene.server), scene.clock, list)  # type: ignore[arg-type]
    assert not await scene.judge()


@pytest.mark.parametrize("step", ["pods/p", "jobs/j", "jobsets/job", "trainjobs/job"])
async def test_an_owner_that_was_replaced_under_its_name_breaks_the_chain(step: str) -> None:
    scene = Scene()
    scene.server.uids[step] = "another"
    assert not await scene.judge()


@pytest.mark.parametrize("step", ["pods/p", "jobs/j", "jobsets/job"])
async def test_a_missing_owner_breaks_the_chain(step: str) -> None:
    scene = Scene()
    scene.server.owners[step] = None
    assert not await scene.judge()


async def test_a_refusal_is_remembered_only_for_seconds_and_an_empty_token_costs_nothing() -> None:
    scene = Scene()
    assert not await scene.judge("")
    assert not await scene.judge("x" * 10_000)
    assert scene.server.asked == []
    assert not await scene.judge("nobody")
    assert not await scene.judge("nobody")
    assert scene.server.asked == ["tokenreviews"]
    await scene.clock.advance(6)
    assert not await scene.judge("nobody")
    assert scene.server.asked == ["tokenreviews"] * 2


def test_an_audience_names_one_jobs_status() -> None:
    assert audience("ns", "job") == "trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status"
