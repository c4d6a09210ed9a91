"""The server's own controllers: one that fails is named and begins anew, or ends the server; none goes missing."""

from __future__ import annotations

import asyncio
import logging

import pytest

from selfcheck.leftovers import Tasks
from trainwright.api.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS
from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.controllers.supervisor import Controller, ControllerFailed, Supervision
from trainwright.embedded.apiserver.server import Server
from trainwright.embedded.apiserver.storage.memory import MemoryStore
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.storage.table import Event
from trainwright.testing.virtualserver import VirtualServer


class Frail:
    """A controller that fails whenever it is told to, and remembers when it began."""

    name = "frail one"

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.began: list[float] = []
        self.resynced = 0
        self.seen: list[str] = []
        self.fail = asyncio.Event()
        self.poison = ""

    def observe(self, event: Event) -> None:
        if event.current.key.name == self.poison:
            raise ValueError(f"cannot bear {self.poison}")
        self.seen.append(event.current.key.name)

    def resync(self) -> None:
        self.resynced += 1

    async def run(self) -> None:
        self.began.append(self.clock.now() - 1000.0)
        await self.fail.wait()
        raise ValueError("broken")


class Steady:
    name = "steady one"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def observe(self, event: Event) -> None:
        self.seen.append(event.current.key.name)

    def resync(self) -> None: ...

    async def run(self) -> None:
        await asyncio.Event().wait()


@pytest.fixture
async def state(clock: VirtualClock) -> State:
    state = State(MemoryStore(), clock)
    state.start()
    return state


async def put(state: State, name: str) -> None:
    _, future = state.put(Key("configmaps", "default", name), {"metadata": {"name": name, "uid": name}})
    await future


async def test_one_that_fails_is_named_and_begins_anew_with_growing_pauses(
    state: State, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    frail = Frail(clock)
    frail.fail.set()
    async with Supervision([frail], state):
        await clock.advance(7.5)
        assert frail.began == [0.0, 1.0, 3.0, 7.0]
        assert frail.resynced == 4  # at the start, and before each new beginning
    texts = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert texts[0] == "the API server's frail one failed and begins anew in 1 s"
    assert all("frail one" in text for text in texts)
    assert "ValueError: broken" in caplog.text


async def test_one_that_fails_at_once_again_and_again_ends_whoever_runs_it(
    state: State, clock: VirtualClock, tasks: Tasks
) -> None:
    frail = Frail(clock)
    frail.fail.set()

    async def serve() -> None:
        async with Supervision([Steady(), frail], state):
            await asyncio.Event().wait()

    serving = tasks.start(serve())
    await clock.advance(100)
    with pytest.raises(ControllerFailed, match="the API server's frail one failed 6 times in a row: broken"):
        await serving
    assert len(frail.began) == 6
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_one_that_had_got_going_is_forgiven(state: State, clock: VirtualClock) -> None:
    frail = Frail(clock)
    async with Supervision([frail], state):
        for _ in range(20):
            await clock.advance(120)
            frail.fail.set()
            await clock.settle()
            frail.fail.clear()
        await clock.advance(1)
        assert len(frail.began) == 21


async def test_one_that_returns_has_failed(state: State, clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    class Idle(Steady):
        name = "idle one"

        async def run(self) -> None:
            return

    async with Supervision([Idle()], state):
        await clock.settle()
    assert "the API server's idle one failed and begins anew" in caplog.text
    assert "it ended without being asked to" in caplog.text


async def test_one_that_cannot_bear_a_change_begins_anew_and_the_others_hear_of_it(
    state: State, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    frail, steady = Frail(clock), Steady()
    frail.poison = "b"
    async with Supervision([frail, steady], state):
        await clock.settle()
        for name in ("a", "b", "c"):
            await put(state, name)
        assert steady.seen == ["a", "b", "c"]
        await clock.advance(1)
        assert frail.began == [0.0, 1.0]
        assert frail.resynced == 2
    assert "cannot bear b" in caplog.text


async def test_what_the_block_raises_comes_out_as_it_is(state: State) -> None:
    with pytest.raises(KeyError):
        async with Supervision([Steady()], state):
            raise KeyError("mine")
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_server_whose_collector_died_collects_again(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainwright.embedded.apiserver.controllers.gc import GarbageCollector

    whole = GarbageCollector.observe

    def breaks(collector: GarbageCollector, event: Event) -> None:
        if event.type == "DELETED":
            raise ValueError("a defect")
        whole(collector, event)

    owner = await server.client.create(CONFIG_MAPS, {"metadata": {"name": "owner"}}, "default")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    child = {"metadata": {"name": "child", "ownerReferences": [reference]}}
    await server.client.create(CONFIG_MAPS, child, "default")
    await server.clock.advance(61)
    monkeypatch.setattr(GarbageCollector, "observe", breaks)
    await server.client.delete(CONFIG_MAPS, "owner", "default")
    await server.clock.advance(0.5)
    assert server.get(CONFIG_MAPS, "child") is not None
    await server.clock.advance(1)
    assert server.get(CONFIG_MAPS, "child") is None


async def test_types_are_served_before_the_first_request_after_a_restart(server: VirtualServer) -> None:
    before = [crd["metadata"]["name"] for crd in server.list(CUSTOM_RESOURCE_DEFINITIONS)]
    await server.restart()
    served = {f"{kind.plural}.{kind.group}" for kind in server.server.registry if kind.custom}
    assert served == set(before)


async def test_a_server_ends_with_the_controller_it_cannot_do_without(clock: VirtualClock, tasks: Tasks) -> None:
    running = Server(MemoryStore(), clock=clock)
    frail = Frail(clock)
    frail.fail.set()
    controllers: tuple[Controller, ...] = (*running.controllers, frail)
    running.controllers = controllers

    async def serve() -> None:
        async with running:
            await asyncio.Event().wait()

    serving = tasks.start(serve())
    await clock.advance(100)
    with pytest.raises(ControllerFailed, match="frail one"):
        await serving
    assert not running.is_running
