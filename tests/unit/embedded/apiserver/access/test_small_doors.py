"""What looks harmless and is not: a short write of a key, a user agent of a stranger, a token for another's pod."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trainwright.api.resources import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS
from trainwright.client import Client, ClientError
from trainwright.client.errors import BadRequest
from trainwright.client.requests import Request
from trainwright.embedded.apiserver.access.tls import write_private
from trainwright.embedded.apiserver.controllers.peers import COLLECTOR, PAUSE_SECONDS
from trainwright.embedded.apiserver.inprocess import InProcessTransport
from trainwright.testing.virtualserver import VirtualServer


@pytest.fixture
async def server() -> AsyncIterator[VirtualServer]:
    async with VirtualServer() as running:
        yield running


def test_a_key_is_written_whole_though_the_disk_takes_a_few_bytes_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:3])))
    write_private(tmp_path / "key", "a private key")
    assert (tmp_path / "key").read_text() == "a private key"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("token", "pauses"), [("", False), (None, True)], ids=["a stranger", "a known user"])
async def test_only_somebody_known_can_say_that_another_collector_is_at_work(
    server: VirtualServer, token: str | None, pauses: bool
) -> None:
    agent = f"kube-controller-manager/v1.36.4 {COLLECTOR}"
    asking = Client(InProcessTransport(server.server, token=token, user_agent=agent))
    try:
        await asking.list(CONFIG_MAPS, namespace="default")
    except ClientError:
        assert token == ""
    waiting = asyncio.create_task(server.server.api.peers.give_way(COLLECTOR))
    await server.clock.settle()
    assert waiting.done() != pauses
    await server.clock.advance(PAUSE_SECONDS)
    await waiting


async def test_a_token_is_not_bound_to_a_pod_of_another_account(server: VirtualServer) -> None:
    for name in ("one", "other"):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        await server.admin.create(SERVICE_ACCOUNTS, account, "default")
    containers = [{"name": "c", "image": "i"}]
    pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "one", "containers": containers}}
    made = await server.admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod}, "default")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"]}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": reference}}
    await server.admin.create(SERVICE_ACCOUNTS, body, "default", name="one", subresource="token")
    with pytest.raises(BadRequest, match="different serviceaccount"):
        await server.admin.create(SERVICE_ACCOUNTS, body, "default", name="other", subresource="token")


@pytest.mark.parametrize("version", ["9" * 5000, "-1", "nonsense"])
async def test_a_version_that_is_no_number_of_ours_is_refused_and_not_failed(
    server: VirtualServer, version: str
) -> None:
    query = (("resourceVersion", version), ("resourceVersionMatch", "Exact"))
    request = Request("GET", "/api/v1/namespaces/default/configmaps", query)
    answer = await server.admin.transport.send(request, deadline=10)
    assert answer.status in (400, 410, 422, 504), answer.body  # 504: too large a version, as kube-apiserver answers
