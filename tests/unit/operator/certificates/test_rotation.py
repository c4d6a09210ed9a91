"""Certificates of an operator that starts: what it serves with, and when it judges it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from trainwright.api.configuration import TLSConfig
from trainwright.api.resources import SECRETS
from trainwright.controlloop import Controller, Manager
from trainwright.operator.certificates import rotation
from trainwright.operator.certificates.material import Policy, next_material
from trainwright.operator.certificates.process import Judgement, Question, judge
from trainwright.operator.certificates.rotation import FILES, JUDGE_SECONDS, Rotation
from trainwright.operator.serving.listening import ServingTLS
from trainwright.testing.virtualserver import VirtualServer

POLICY = Policy("trainer.kubeflow-system.svc")
NAME = "trainer-certificates"


class Scene:
    """A replica whose questions about certificates are answered in this process, and counted."""

    def __init__(self, server: VirtualServer) -> None:
        self.server = server
        self.judged = 0
        self.tls = ServingTLS(TLSConfig())
        self.rotation = Rotation(
            server.client,
            self.tls,
            namespace="default",
            secret=NAME,
            policy=POLICY,
            clock=server.clock,
            judge=self._judge,
        )

    async def _judge(self, question: Question) -> Judgement:
        self.judged += 1
        return judge(question)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        clock, rotating = self.server.clock, self.rotation
        controller = Controller(rotation.CONTROLLER, rotating.reconcile, rotating.watches, clock=clock)
        controller.add(rotating.key)
        task = asyncio.create_task(Manager(self.server.client, [controller], clock=clock).run())
        try:
            await clock.settle()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def server() -> AsyncIterator[VirtualServer]:
    async with VirtualServer() as server:
        yield server


async def store(server: VirtualServer, **damage: bytes) -> None:
    material = next_material(None, POLICY, datetime.fromtimestamp(server.clock.wall(), UTC), injected=False)
    assert material is not None
    contents = (material.bundle, material.authority_key, material.certificate, material.key)
    data = {name: base64.b64encode(damage.get(name, content)) for name, content in zip(FILES, contents, strict=True)}
    body = {"metadata": {"name": NAME}, "data": {name: text.decode() for name, text in data.items()}}
    await server.admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **body}, "default")


async def test_a_certificate_that_is_there_is_served_at_once_and_judged_later(server: VirtualServer) -> None:
    await store(server)
    scene = Scene(server)
    async with scene.running():
        assert scene.rotation.is_ready
        assert "BEGIN CERTIFICATE" in scene.rotation.ca_certificate
        assert scene.judged == 0
        await server.clock.advance(JUDGE_SECONDS)
        assert scene.judged == 1


async def test_what_is_stored_and_no_pair_is_replaced_before_anything_is_served(server: VirtualServer) -> None:
    await store(server, **{"tls.key": b"no key"})
    scene = Scene(server)
    async with scene.running():
        await server.clock.advance(1)
        assert scene.judged >= 1
        assert scene.rotation.is_ready
        stored = server.get(SECRETS, NAME)
        assert stored is not None
        assert base64.b64decode(stored["data"]["tls.key"]) != b"no key"


async def test_without_a_certificate_one_is_made_and_the_servers_wait_for_it(server: VirtualServer) -> None:
    scene = Scene(server)
    waiting = asyncio.ensure_future(scene.tls.wait_ready())
    async with scene.running():
        await server.clock.advance(1)
        assert scene.rotation.is_ready
        await waiting
