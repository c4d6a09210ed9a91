"""The engine as a whole in virtual time, against a scripted transport: the seam below the client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import JOB_SETS, PODS
from trainwright.client import Client, Conflict, TooManyRequests, UnknownOutcome, Unreachable
from trainwright.client.errors import Status
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop import (
    After,
    Controller,
    Done,
    Key,
    Manager,
    NotYet,
    Outcome,
    Source,
    VirtualClock,
    Watches,
    controlled_by,
)


class Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class FakeServer:
    """Keeps objects in memory, streams events to open watches, and can be made to fail: a transport, not a mock."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, dict[str, Any]] = {}
        self.watches: list[asyncio.Queue[bytes | Exception | None]] = []
        self.lists = 0
        self.watch_versions: list[str] = []
        self.fail: Callable[[Request], Answer | Exception | None] = lambda request: None

    def put(self, name: str, owner: str = "") -> None:
        self.version += 1
        metadata: dict[str, Any] = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(self.version)}
        if owner:
            metadata["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "Owner", "name": owner, "uid": owner, "controller": True}
            ]
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = {"metadata": metadata}
        self.emit(kind, self.objects[name])

    def drop(self, name: str) -> None:
        self.version += 1
        gone = self.objects.pop(name)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.emit("DELETED", gone)

    def emit(self, kind: str, thing: dict[str, Any]) -> None:
        for queue in self.watches:
            queue.put_nowait(json.dumps({"type": kind, "object": thing}).encode())

    def cut(self, how: Exception | None = None) -> None:
        for queue in self.watches:
            queue.put_nowait(how)

    async def send(self, request: Request, *, deadline: float) -> Answer:
        failure = self.fail(request)
        if isinstance(failure, Exception):
            raise failure
        if failure is not None:
            return failure
        self.lists += 1
        body = {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.objects.values())}
        return Answer(200, {}, json.dumps(body).encode())

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Any]:
        failure = self.fail(request)
        if isinstance(failure, Exception):
            raise failure
        self.watch_versions.append(dict(request.query)["resourceVersion"])
        queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.watches.append(queue)
        try:
            yield FakeStream(queue, failure)
        finally:
            self.watches.remove(queue)

    async def open(self) -> None: ...
    async def close(self) -> None: ...


class FakeStream:
    def __init__(self, queue: asyncio.Queue[bytes | Exception | None], failure: Answer | None) -> None:
        self.status = failure.status if failure else 200
        self.headers: dict[str, str] = {}
        self._queue = queue
        self._failure = failure

    async def read(self) -> bytes:
        return self._failure.body if self._failure else b""

    async def lines(self) -> AsyncIterator[bytes]:
        while (item := await self._queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    def chunks(self) -> AsyncIterator[bytes]:
        return self.lines()


def status(code: int, reason: str) -> bytes:
    return json.dumps({"kind": "Status", "status": "Failure", "code": code, "reason": reason}).encode()


class World:
    """A manager with one controller over pods, running in virtual time."""

    def __init__(self, reconcile: Any = None, workers: int = 1, keys_of: Any = None) -> None:
        self.clock = VirtualClock()
        self.server = FakeServer()
        self.seen: list[Key] = []
        self.source = Source(PODS, Pod)
        self.controller = Controller(
            "test", reconcile or self.note, [Watches(self.source, keys_of)], workers=workers, clock=self.clock
        )
        self.manager = Manager(Client(self.server), [self.controller], clock=self.clock)
        self._task: asyncio.Task[None] | None = None

    async def note(self, key: Key) -> Outcome:
        self.seen.append(key)
        return Done()

    async def __aenter__(self) -> World:
        self._task = asyncio.create_task(self.manager.run())
        await self.clock.settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_objects_listed_and_objects_that_come_later_are_both_reconciled() -> None:
    world = World()
    world.server.put("a")
    async with world:
        world.server.put("b")
        await world.clock.settle()
        assert world.seen == [Key("ns", "a"), Key("ns", "b")]


async def test_a_deletion_missed_while_disconnected_is_reconciled_after_the_relist() -> None:
    world = World()
    world.server.put("a")
    async with world:
        world.seen.clear()
        world.server.objects.clear()  # no event: compacted away
        world.server.emit("ERROR", json.loads(status(410, "Expired")))
        await world.clock.advance(1)
        assert world.seen == [Key("ns", "a")]
        assert len(world.source.store) == 0


async def test_410_as_a_status_of_the_watch_leads_to_a_relist_too() -> None:
    world = World()
    async with world:
        gone = Answer(410, {}, status(410, "Expired"))
        world.server.fail = lambda request: gone if "watch=true" in request.target else None
        world.server.cut()
        await world.clock.settle()
        world.server.fail = lambda request: None
        world.server.put("a")
        await world.clock.advance(60)
        assert world.seen == [Key("ns", "a")]
        assert 1 < world.server.lists < 5


async def test_a_watch_that_ends_goes_on_from_the_last_version_without_a_list() -> None:
    world = World()
    async with world:
        world.server.put("a")
        await world.clock.settle()
        world.server.cut()
        await world.clock.settle()
        assert world.server.lists == 1
        assert world.server.watch_versions == ["1", "2"]


async def test_bookmarks_move_the_version_and_wake_nobody() -> None:
    world = World()
    async with world:
        world.server.emit("BOOKMARK", {"metadata": {"resourceVersion": "77"}})
        world.server.emit("NEWLY_INVENTED", {"metadata": {"resourceVersion": "78"}})
        world.server.cut(UnknownOutcome("idle"))
        await world.clock.advance(5)
        assert world.seen == []
        assert world.server.watch_versions == ["1", "78"]


async def test_a_server_that_cannot_be_reached_is_asked_again_but_not_often() -> None:
    world = World()
    tries = 0

    def refuse(request: Request) -> Exception:
        nonlocal tries
        tries += 1
        return Unreachable("refused")

    world.server.fail = refuse
    async with world:
        await world.clock.advance(60)
        assert 3 <= tries <= 60
        world.server.fail = lambda request: None
        world.server.put("a")
        await world.clock.advance(60)
        assert world.seen == [Key("ns", "a")]


async def test_a_type_that_is_not_served_blocks_nobody_and_comes_alive_by_itself() -> None:
    world = World()
    absent = Answer(404, {}, b"404 page not found")
    other = Source(JOB_SETS, Pod)
    world.controller.watches.append(Watches(other))
    other.listen(lambda delta: world.controller.add(Key("jobset", "")))
    served: list[bool] = []
    other.listen_answers(lambda: served.append(not other.trouble))
    world.manager = Manager(Client(world.server), [world.controller], clock=world.clock)
    world.server.fail = lambda request: absent if "jobsets" in request.path else None
    world.server.put("a")
    async with world:
        assert world.seen == [Key("ns", "a")]
        assert other.trouble.startswith("jobsets.jobset.x-k8s.io is not served")
        world.server.fail = lambda request: None
        await world.clock.advance(7)
        assert not other.trouble
        assert len(other.store) == 1
        world.server.fail = lambda request: absent if "jobsets" in request.path else None
        world.server.cut()
        await world.clock.advance(7)
        assert len(other.store) == 0
    assert served == [False, True, False]


async def test_owned_objects_wake_their_controlling_owner() -> None:
    world = World(keys_of=controlled_by("Owner"))
    async with world:
        world.server.put("a", owner="boss")
        world.server.put("b", owner="")
        await world.clock.settle()
        assert world.seen == [Key("ns", "boss")]


async def test_a_failing_key_comes_back_with_growing_delay_and_the_others_are_not_held_up() -> None:
    times: dict[str, list[float]] = {"bad": [], "good": []}

    async def reconcile(key: Key) -> Outcome:
        times[key.name].append(world.clock.now())
        if key.name == "bad":
            raise RuntimeError("plugin")
        return Done()

    world = World(reconcile)
    world.server.put("bad")
    world.server.put("good")
    async with world:
        await world.clock.advance(1)
        assert len(times["good"]) == 1
        gaps = [later - earlier for earlier, later in zip(times["bad"], times["bad"][1:], strict=False)]
        assert gaps == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])


async def test_twelve_conflicts_in_a_row_converge_within_seconds() -> None:
    left = 12
    done_at: list[float] = []

    async def reconcile(key: Key) -> Outcome:
        nonlocal left
        if left:
            left -= 1
            raise Conflict(Status(code=409, reason="Conflict"))
        done_at.append(world.clock.now() - 1000.0)
        return Done()

    world = World(reconcile)
    world.server.put("a")
    async with world:
        await world.clock.advance(20)
        assert done_at
        assert done_at[0] < 10


async def test_a_429_is_not_retried_before_the_time_it_names() -> None:
    times: list[float] = []

    async def reconcile(key: Key) -> Outcome:
        times.append(world.clock.now())
        raise TooManyRequests(Status(code=429), retry_after=30.0)

    world = World(reconcile)
    world.server.put("a")
    async with world:
        await world.clock.advance(29.9)
        assert len(times) == 1
        await world.clock.advance(0.2)
        assert len(times) == 2


async def test_after_brings_the_key_back_at_its_time() -> None:
    times: list[float] = []

    async def reconcile(key: Key) -> Outcome:
        times.append(world.clock.now())
        return After(10.0) if len(times) == 1 else Done()

    world = World(reconcile)
    world.server.put("a")
    async with world:
        await world.clock.advance(100)
        assert [time - times[0] for time in times] == pytest.approx([0, 10.0])


@pytest.mark.parametrize("seconds", [0.0, 1.2e-13])  # the second is what rounding leaves of a wait that is over
@pytest.mark.parametrize("fails", [False, True])
async def test_no_outcome_makes_a_controller_spin(seconds: float, fails: bool) -> None:
    passes = 0

    async def reconcile(key: Key) -> Outcome:
        nonlocal passes
        passes += 1
        assert passes < 1000, "it spins"
        if fails:
            raise NotYet("somebody else must act", within=seconds)
        return After(seconds)

    world = World(reconcile)
    world.server.put("a")
    async with world:
        await world.clock.advance(1)
        assert 100 < passes < 250


async def test_several_workers_work_at_once_but_never_on_one_key() -> None:
    running: set[Key] = set()
    most = 0

    async def reconcile(key: Key) -> Outcome:
        nonlocal most
        assert key not in running
        running.add(key)
        most = max(most, len(running))
        await world.clock.sleep(1)
        running.discard(key)
        return Done()

    world = World(reconcile, workers=3)
    for name in "abcde":
        world.server.put(name)
    async with world:
        world.server.put("a")
        await world.clock.advance(10)
        assert most == 3
        assert not running


async def test_an_informer_that_breaks_ends_the_manager_with_its_error() -> None:
    world = World()

    def explode(request: Request) -> Exception:
        return ZeroDivisionError("a bug")

    world.server.fail = explode
    with pytest.raises(ExceptionGroup) as caught:
        await world.manager.run()
    assert caught.group_contains(ZeroDivisionError)


async def test_a_thousand_keys_with_nothing_to_do_do_not_hold_up_the_others() -> None:
    world = World()
    for number in range(1000):
        world.server.put(f"pod-{number}")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while len(world.seen) < 1000:
            await asyncio.sleep(0)
            turns += bool(world.seen)

    busy = asyncio.create_task(others())
    async with world:
        await busy
    assert turns >= 100


async def test_a_controller_waits_for_what_had_better_be_there() -> None:
    world = World()
    there = asyncio.Event()
    world.controller = Controller("test", world.note, [Watches(world.source)], begin=there.wait, clock=world.clock)
    world.manager = Manager(Client(world.server), [world.controller], clock=world.clock)
    world.server.put("a")
    async with world:
        assert world.source.is_synced
        assert world.seen == []
        there.set()
        await world.clock.settle()
        assert world.seen == [Key("ns", "a")]
