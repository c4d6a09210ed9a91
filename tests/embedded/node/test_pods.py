"""What the API shows of a pod's health: conditions, container statuses and events in a kubelet's words."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from embedded.node.cluster import Cluster, conditions, pod, running_cluster
from trainwright.api.resources import EVENTS, PODS
from trainwright.schema.jsonobject import Json


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path / "state") as running:
        yield running


async def events_of(cluster: Cluster, name: str) -> list[Json]:
    found = (await cluster.client.list(EVENTS, "default")).items or []
    return [event for event in found if event["involvedObject"]["name"] == name]


async def test_a_pod_is_ready_when_its_probe_says_so_also_after_a_restart_of_the_node(
    cluster: Cluster, tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = f"""
import os, socket, time
while not os.path.exists({str(tmp_path / "listen")!r}): time.sleep(0.05)
socket.create_server(("0.0.0.0", {port})).accept(); time.sleep(600)
"""
    container: Any = {"readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}}
    container |= {"command": [sys.executable, "-S", "-c", program]}
    await cluster.create(PODS, pod("p", container=container, terminationGracePeriodSeconds=0))

    async def unhealthy() -> Json | None:
        return next((event for event in await events_of(cluster, "p") if event["reason"] == "Unhealthy"), None)

    event = await cluster.until(unhealthy)
    found = await cluster.until_pod("p", "Running")
    address = found["status"]["podIP"]
    assert event["message"] == f"Readiness probe failed: dial tcp {address}:{port}: connect: connection refused"
    assert conditions(found["status"])["Ready"] == ("False", "ContainersNotReady")
    (status,) = found["status"]["containerStatuses"]
    assert (status["ready"], status["started"]) == (False, True)
    await cluster.stop_node()
    (tmp_path / "listen").touch()
    await cluster.start_node()

    async def ready() -> bool:
        found = await cluster.get(PODS, "p") or {}
        return conditions(found["status"])["Ready"][0] == "True" and found["status"]["containerStatuses"][0]["ready"]

    await cluster.until(ready)
    again = [event for event in await events_of(cluster, "p") if event["reason"] == "Unhealthy"]
    assert len(again) == 1, "the next node counts the event of the one before it up"


async def test_a_sidecar_shows_as_in_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    sidecar = {"name": "s", "image": "none", "command": ["sleep", "600"], "restartPolicy": "Always"}
    body = pod("p", "sh", "-c", wait, initContainers=[sidecar], terminationGracePeriodSeconds=1)
    await cluster.create(PODS, body)
    found = await cluster.until_pod("p", "Running")
    assert conditions(found["status"])["Initialized"][0] == "True"
    assert conditions(found["status"])["Ready"][0] == "True"
    (status,) = found["status"]["initContainerStatuses"]
    assert (status["ready"], status["started"], "running" in status["state"]) == (True, True, True)
    (tmp_path / "go").touch()
    found = await cluster.until_pod("p", "Succeeded")
    assert "terminated" in found["status"]["initContainerStatuses"][0]["state"]
