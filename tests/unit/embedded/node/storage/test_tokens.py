"""Tokens in pods' volumes, in virtual time: the node that has the pod renews them before they expire."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from trainwright.api.times import rfc3339
from trainwright.client import Client, Unreachable
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop import VirtualClock
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.podspec.environment import Unresolved
from trainwright.embedded.node.storage.tokens import PodTokens
from trainwright.schema.jsonobject import Json


class TokenServer:
    """Answers TokenRequests as an API server does, with tokens that say their number."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.asked: list[tuple[str, Json]] = []
        self.is_away = False
        self.accounts = {"default"}

    async def send(self, request: Request, *, deadline: float) -> Answer:
        if self.is_away:
            raise Unreachable("the API server is away")
        account = request.path.split("/")[-2]
        if account not in self.accounts:
            status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}
            return Answer(404, {}, json.dumps(status).encode())
        spec = json.loads(request.body or b"")["spec"]
        self.asked.append((request.path, spec))
        end = rfc3339(self.clock.wall() + spec["expirationSeconds"])
        status = {"token": f"token {len(self.asked)}", "expirationTimestamp": end}
        return Answer(201, {}, json.dumps({"status": status}).encode())

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Any]:
        raise AssertionError("nobody watches tokens")
        yield

    async def open(self) -> None: ...
    async def close(self) -> None: ...


def pod(volume: str = "v", seconds: int = 3600, **spec: Any) -> Json:
    source = {"serviceAccountToken": {"path": "token", "audience": "somebody", "expirationSeconds": seconds}}
    volumes = [{"name": volume, "projected": {"defaultMode": 0o600, "sources": [source]}}]
    metadata = {"name": "p", "namespace": "ns", "uid": "u1"}
    return {"metadata": metadata, "spec": {"containers": [], "volumes": volumes, **spec}}


class Scene:
    def __init__(self, path: Path) -> None:
        self.clock = VirtualClock()
        self.server = TokenServer(self.clock)
        self.directory = PodDirectory(path / "u1")
        self.directory.path.mkdir()
        self.tokens = self.new_node()
        self.file = self.directory.volumes / "v" / "token"

    def new_node(self) -> PodTokens:
        return PodTokens(Client(self.server), self.clock)

    async def start(self, of: Json) -> None:
        fetched = await self.tokens.fetch(of)
        await self.tokens.remember(self.directory, fetched)
        self.file.parent.mkdir(parents=True)
        self.file.write_text(fetched["v/token"].text)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_a_token_is_asked_for_with_its_audience_and_bound_to_its_pod(scene: Scene) -> None:
    await scene.start(pod())
    ((path, spec),) = scene.server.asked
    assert path == "/api/v1/namespaces/ns/serviceaccounts/default/token"
    assert (spec["audiences"], spec["expirationSeconds"]) == (["somebody"], 3600)
    assert spec["boundObjectRef"] == {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u1"}


async def test_a_token_is_renewed_after_four_fifths_of_its_life(scene: Scene) -> None:
    await scene.start(pod())
    assert await scene.tokens.renew(pod(), scene.directory) == pytest.approx(2880, abs=1)
    await scene.clock.advance(2870)
    await scene.tokens.renew(pod(), scene.directory)
    assert scene.file.read_text() == "token 1"
    await scene.clock.advance(11)
    assert await scene.tokens.renew(pod(), scene.directory) == pytest.approx(2880, abs=1)
    assert scene.file.read_text() == "token 2"


async def test_a_token_with_a_long_life_is_renewed_after_a_day(scene: Scene) -> None:
    await scene.start(pod(seconds=30 * 24 * 3600))
    assert await scene.tokens.renew(pod(), scene.directory) == pytest.approx(24 * 3600, abs=1)


async def test_the_new_token_takes_the_place_of_the_old_in_one_step(scene: Scene) -> None:
    await scene.start(pod())
    await scene.clock.advance(3000)
    with scene.file.open() as reader:
        await scene.tokens.renew(pod(), scene.directory)
        assert reader.read() == "token 1", "who has the old file open reads it to the end"
    assert scene.file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(scene.file.parent) == ["token"]


async def test_a_node_that_adopts_the_pod_goes_on_with_its_times(scene: Scene) -> None:
    await scene.start(pod())
    await scene.clock.advance(1000)
    adopting = scene.new_node()
    assert await adopting.renew(pod(), scene.directory) == pytest.approx(1880, abs=1)
    assert len(scene.server.asked) == 1
    await scene.clock.advance(7200)  # nobody was there when it ended
    await scene.new_node().renew(pod(), scene.directory)
    assert scene.file.read_text() == "token 2"


async def test_a_pod_of_which_no_times_are_known_gets_a_new_token_at_once(scene: Scene) -> None:
    await scene.start(pod())
    (scene.directory.path / "tokens.json").unlink()
    await scene.new_node().renew(pod(), scene.directory)
    assert scene.file.read_text() == "token 2"


async def test_a_renewal_that_fails_keeps_the_old_token_and_is_tried_again(scene: Scene) -> None:
    await scene.start(pod())
    await scene.clock.advance(2881)
    scene.server.is_away = True
    assert await scene.tokens.renew(pod(), scene.directory) == pytest.approx(60, abs=1)
    assert scene.file.read_text() == "token 1"
    scene.server.is_away = False
    await scene.clock.advance(61)
    await scene.tokens.renew(pod(), scene.directory)
    assert scene.file.read_text() == "token 2"


async def test_a_pod_without_tokens_asks_for_nothing(scene: Scene) -> None:
    assert await scene.tokens.renew(pod(volumes=[]), scene.directory) == float("inf")
    assert scene.server.asked == []
    assert not (scene.directory.path / "tokens.json").exists()


async def test_a_pod_waits_for_its_service_account_unless_the_volume_is_optional(scene: Scene) -> None:
    waiting = pod(serviceAccountName="missing")
    with pytest.raises(Unresolved, match="no token for service account missing"):
        await scene.tokens.fetch(waiting)
    waiting["metadata"]["annotations"] = {"trainwright.dev/optional-volumes": "v"}
    assert await scene.tokens.fetch(waiting) == {}
