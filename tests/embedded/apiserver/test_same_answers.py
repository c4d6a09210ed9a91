"""One server, two ways in: what a client is told over HTTPS and in process is the same, headers and all."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from trainwright.client import HttpTransport, kubeconfig
from trainwright.client.requests import APPLY_PATCH, MERGE_PATCH, Request
from trainwright.client.transport import Transport
from trainwright.clock import VirtualClock
from trainwright.embedded import manifests
from trainwright.embedded.apiserver import ApiServer, User
from trainwright.embedded.apiserver.inprocess import InProcessTransport

CONFIG_MAPS = "/api/v1/namespaces/{place}/configmaps"
THINGS = "/apis/example.com/v1/namespaces/{place}/things"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
OF_THE_WIRE = {"connection", "content-length", "transfer-encoding"}

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "deprecated": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}


def body(kind: str, name: str, **more: Any) -> bytes:
    version = "v1" if kind == "ConfigMap" else "example.com/v1"
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}).encode()


STORY = [
    Request("GET", "/version"),
    Request("GET", "/api"),
    Request("GET", "/apis", accept="application/yaml"),
    Request("GET", "/openapi/v3"),
    Request("GET", "/readyz"),
    Request("GET", "/nowhere"),
    Request("DELETE", "/version"),
    Request("POST", CONFIG_MAPS, (), body("ConfigMap", "a", data={"x": "1"})),
    Request("POST", CONFIG_MAPS, (), body("ConfigMap", "a")),
    Request("POST", CONFIG_MAPS, (), body("ConfigMap", "b", unknown=1)),
    Request("POST", CONFIG_MAPS, (("fieldValidation", "Strict"),), body("ConfigMap", "c", unknown=1)),
    Request("POST", CONFIG_MAPS, (), b"{"),
    Request("POST", CONFIG_MAPS, (), b"x" * 3_200_000),
    Request("PUT", f"{CONFIG_MAPS}/a", (), body("ConfigMap", "a", data={"x": "2"})),
    Request("PATCH", f"{CONFIG_MAPS}/a", (), b'{"data":{"y":"3"}}', MERGE_PATCH),
    Request("PATCH", f"{CONFIG_MAPS}/a", (), b"{}", "application/wrong"),
    Request(
        "PATCH", f"{CONFIG_MAPS}/d", (("fieldManager", "m"),), body("ConfigMap", "d", data={"k": "v"}), APPLY_PATCH
    ),
    Request("GET", f"{CONFIG_MAPS}/a"),
    Request("GET", f"{CONFIG_MAPS}/a", accept="application/yaml"),
    Request("GET", CONFIG_MAPS, accept=TABLE),
    Request("GET", CONFIG_MAPS, (("limit", "1"),)),
    Request("GET", CONFIG_MAPS, (("labelSelector", "a b"),)),
    Request("GET", f"{CONFIG_MAPS}/missing"),
    Request("GET", f"{CONFIG_MAPS}/a", accept="image/png"),
    Request("GET", f"{CONFIG_MAPS}/missing", accept="application/vnd.kubernetes.protobuf,application/json"),
    Request("POST", THINGS, (), body("Thing", "t", spec={"size": 1, "color": "red"})),
    Request("POST", THINGS, (), body("Thing", "u", spec={"size": "large"})),
    Request("GET", f"{THINGS}/t"),
    Request("DELETE", f"{CONFIG_MAPS}/b"),
    Request("DELETE", CONFIG_MAPS),
    Request("GET", CONFIG_MAPS, (("watch", "true"), ("timeoutSeconds", "0x"))),
    Request("GET", CONFIG_MAPS, (("watch", "true"), ("resourceVersionMatch", "Exact"))),
]


class Ways:
    """A server in virtual time with both ways in. Each story is told in a namespace of its own."""

    def __init__(self, server: ApiServer, clock: VirtualClock) -> None:
        self.server = server
        self.clock = clock

    async def told(self, transport: Transport, place: str, requests: list[Request]) -> list[Any]:
        answers = []
        for asked in requests:
            request = _in(place, asked)
            async with transport.stream(request, deadline=10.0, idle=10.0) as stream:
                streamed = (stream.status, _headers(stream.headers), _plain(await stream.read(), place))
            answers.append((f"{asked.method} {asked.target}", *streamed))
        return answers

    async def both(self, requests: list[Request]) -> tuple[list[Any], list[Any]]:
        config = kubeconfig.load(self.server.kubeconfig)
        for place in ("one", "two"):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
            await self.server.install([namespace])
        async with HttpTransport(config, user_agent="trainwright") as over_https:
            first = await self.told(over_https, "one", requests)
        second = await self.told(InProcessTransport(self.server.server), "two", requests)
        return first, second


def _in(place: str, request: Request) -> Request:
    path = request.path.replace("{place}", place)
    return Request(request.method, path, request.query, request.body, request.content_type, request.accept)


def _headers(headers: Any) -> list[tuple[str, str]]:
    names = {name.lower() for name in headers} - set(OF_THE_WIRE)
    return sorted((name, value) for name in names for value in headers.getall(name, []))


def _plain(data: bytes, place: str) -> str:
    """Without what two objects never share: UIDs, versions, the namespace."""
    text = (
        data.decode(errors="backslashreplace")
        .replace(f'"{place}"', '"{place}"')
        .replace(f"namespace: {place}", "namespace: {place}")
    )
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r'("resourceVersion":"|resourceVersion: .)\d+', r"\1N", text)
    return re.sub(r'"continue":"[\w-]+"', '"continue":"TOKEN"', text)


@pytest.fixture
async def ways(tmp_path: Path) -> AsyncIterator[Ways]:
    clock = VirtualClock(time.time())  # certificates are judged by the time of the machine
    async with ApiServer(tmp_path / "state", clock=clock) as server:
        await server.install([CRD])
        yield Ways(server, clock)


async def test_every_answer_is_the_same_both_ways(ways: Ways) -> None:
    over_https, in_process = await ways.both(STORY)
    assert in_process == over_https
    statuses = {status for _, status, _, _ in in_process}
    assert statuses >= {200, 201, 400, 404, 405, 406, 409, 413, 415, 422}  # the story has something of everything
    assert any(name == "warning" for _, _, headers, _ in in_process for name, _ in headers)


async def test_a_watch_says_the_same_both_ways(ways: Ways) -> None:
    writes = [
        Request("POST", CONFIG_MAPS, (), body("ConfigMap", "a")),
        Request("PATCH", f"{CONFIG_MAPS}/a", (), b'{"data":{"y":"3"}}', MERGE_PATCH),
        Request("DELETE", f"{CONFIG_MAPS}/a"),
        Request("POST", THINGS, (), body("Thing", "t")),
    ]
    told: dict[str, Any] = {}
    async with HttpTransport(kubeconfig.load(ways.server.kubeconfig), user_agent="trainwright") as over_https:
        for place, transport in (("one", over_https), ("two", InProcessTransport(ways.server.server))):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
            await ways.server.install([namespace])
            watch = Request("GET", CONFIG_MAPS, (("watch", "true"), ("resourceVersion", "0")))
            async with transport.stream(_in(place, watch), deadline=10.0, idle=10.0) as stream:
                for write in writes:
                    await transport.send(_in(place, write), deadline=10.0)
                lines = stream.lines()
                events = [_plain(await anext(lines), place) for _ in range(3)]
                told[place] = (stream.status, _headers(stream.headers), events)
            things = Request("GET", THINGS, (("watch", "true"), ("timeoutSeconds", "1")))
            async with transport.stream(_in(place, things), deadline=10.0, idle=10.0) as stream:
                told[place] += (_headers(stream.headers), _plain(await anext(stream.lines()), place))
    assert told["two"] == told["one"]
    assert [json.loads(event)["type"] for event in told["one"][2]] == ["ADDED", "MODIFIED", "DELETED"]
    assert ("warning", '299 - "example.com/v1 Thing is deprecated"') in told["one"][3]


async def test_who_may_not_is_told_so_both_ways(tmp_path: Path) -> None:
    users = {"guest-token": User("guest", groups=("system:authenticated",))}
    clock = VirtualClock(time.time())
    async with ApiServer(tmp_path / "state", clock=clock, users=users) as server:
        ways = Ways(server, clock)
        config = json.loads(server.kubeconfig.read_text())
        config["users"][0]["user"]["token"] = "guest-token"
        path = tmp_path / "guest"
        path.write_text(json.dumps(config))
        requests = [Request("GET", "/version"), Request("GET", CONFIG_MAPS), Request("DELETE", "/metrics")]
        async with HttpTransport(kubeconfig.load(path), user_agent="trainwright") as over_https:
            first = await ways.told(over_https, "x", requests)
        second = await ways.told(InProcessTransport(server.server, token="guest-token"), "x", requests)
    assert second == first
    assert [status for _, status, _, _ in first] == [200, 403, 403]


async def test_the_packages_manifests_go_in_without_a_warning(ways: Ways, caplog: pytest.LogCaptureFixture) -> None:
    await ways.server.install(manifests.crds())
    assert "jobsets.jobset.x-k8s.io" in {key.name for key in ways.server.server.state.uids.values()}
    assert not caplog.records
