"""Leader election in virtual time: one leader at a time, a hard stop on loss, and no write after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from trainwright.client import Client, UnknownOutcome
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop import VirtualClock
from trainwright.controlloop.election import Election, ElectionConfig, Fence, LostLease, NotLeading


class LeaseServer:
    """Holds one Lease with a version, as the API server does: a transport."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes: list[str] = []
        self.fail: Callable[[Request], Exception | None] = lambda request: None

    async def send(self, request: Request, *, deadline: float) -> Answer:
        failure = self.fail(request)
        if failure is not None:
            raise failure
        if request.method == "GET":
            if self.lease is None:
                return _status(404, "NotFound", {"name": "x"})
            return Answer(200, {}, json.dumps(self.lease).encode())
        body: dict[str, Any] = json.loads(request.body or b"{}")
        if request.method == "POST" and self.lease is not None:
            return _status(409, "AlreadyExists")
        if request.method == "PUT":
            if self.lease is None:
                return _status(404, "NotFound", {"name": "x"})
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                return _status(409, "Conflict")
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        self.writes.append(body["spec"]["holderIdentity"])
        return Answer(200, {}, json.dumps(body).encode())

    async def open(self) -> None: ...
    async def close(self) -> None: ...


def _status(code: int, reason: str, details: dict[str, str] | None = None) -> Answer:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "details": details}
    return Answer(code, {}, json.dumps(body).encode())


class Candidate:
    def __init__(self, server: LeaseServer, clock: VirtualClock, name: str) -> None:
        config = ElectionConfig("ns", "lease", name, lease_duration=15, renew_deadline=10, retry_period=2)
        self.server = server
        self.election = Election(Client(server), config, clock, jitter=lambda: 0.0)  # type: ignore[arg-type]
        self.acting = False
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.election.lead(self._act))

    async def _act(self) -> None:
        self.acting = True
        try:
            await asyncio.Event().wait()
        finally:
            self.acting = False

    async def stop(self) -> BaseException | None:
        assert self.task is not None
        self.task.cancel()
        [result] = await asyncio.gather(self.task, return_exceptions=True)
        return result if isinstance(result, BaseException) else None


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


async def test_of_two_candidates_one_leads_and_the_other_waits(server: LeaseServer, clock: VirtualClock) -> None:
    first, second = Candidate(server, clock, "first"), Candidate(server, clock, "second")
    first.start()
    second.start()
    await clock.advance(120)
    assert [first.acting, second.acting].count(True) == 1
    await first.stop()
    await second.stop()


async def test_a_leader_that_stops_lets_go_so_that_the_next_need_not_wait(
    server: LeaseServer, clock: VirtualClock
) -> None:
    first, second = Candidate(server, clock, "first"), Candidate(server, clock, "second")
    first.start()
    await clock.advance(1)
    second.start()
    await clock.advance(5)
    assert first.acting
    await first.stop()
    await clock.advance(3)
    assert second.acting
    await second.stop()


async def test_a_leader_that_stops_at_once_lets_go_too(server: LeaseServer, clock: VirtualClock) -> None:
    leader = Candidate(server, clock, "leader")
    leader.start()
    await clock.settle()
    assert leader.acting
    await leader.stop()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == ""


async def test_a_leader_that_vanishes_is_followed_after_its_lease_and_not_before(
    server: LeaseServer, clock: VirtualClock
) -> None:
    first, second = Candidate(server, clock, "first"), Candidate(server, clock, "second")
    first.start()
    await clock.advance(1)
    second.start()
    await clock.advance(1)
    assert first.task is not None
    server.fail = lambda request: UnknownOutcome("cut") if b'"first"' in (request.body or b"") else None
    await clock.advance(14)
    assert not second.acting
    await clock.advance(5)
    assert second.acting
    assert not first.acting
    assert isinstance(await first.stop(), LostLease)
    await second.stop()


@pytest.mark.parametrize("failure", ["timeouts", "taken"])
async def test_a_leader_that_cannot_renew_stops_before_anybody_else_may_start(
    server: LeaseServer, clock: VirtualClock, failure: str
) -> None:
    leader = Candidate(server, clock, "leader")
    leader.start()
    await clock.advance(1)
    assert leader.acting
    if failure == "timeouts":
        server.fail = lambda request: UnknownOutcome("no answer")
    else:
        assert server.lease is not None
        server.lease["spec"]["holderIdentity"] = "forged"
    await clock.advance(12)
    assert leader.task is not None
    assert leader.task.done()
    assert isinstance(leader.task.exception(), LostLease)
    assert not leader.acting


async def test_a_deleted_lease_is_taken_again(server: LeaseServer, clock: VirtualClock) -> None:
    leader = Candidate(server, clock, "leader")
    leader.start()
    await clock.advance(1)
    server.lease = None
    await clock.advance(30)
    assert leader.acting
    assert server.lease is not None
    await leader.stop()


async def test_another_machines_wall_clock_does_not_matter(server: LeaseServer, clock: VirtualClock) -> None:
    first, second = Candidate(server, clock, "first"), Candidate(server, clock, "second")
    first.start()
    await clock.advance(1)
    clock.jump_wall(3600)
    second.start()
    await clock.advance(60)
    assert first.acting
    assert not second.acting
    await first.stop()
    await second.stop()


async def test_after_a_pause_longer_than_the_deadline_no_write_gets_through(
    server: LeaseServer, clock: VirtualClock
) -> None:
    """What SIGSTOP does: time passes, no task runs, then all of them run at once."""
    leader = Candidate(server, clock, "leader")
    leader.start()
    await clock.advance(1)
    sent: list[str] = []

    class Wire:
        async def send(self, request: Request, *, deadline: float) -> Answer:
            sent.append(request.method)
            return Answer(200, {}, b"{}")

    fence = Fence(Wire(), lambda: leader.election.is_leading)  # type: ignore[arg-type]
    await fence.send(Request("PATCH", "/x"), deadline=1)
    clock._now += 11  # nobody was scheduled meanwhile
    with pytest.raises(NotLeading):
        await fence.send(Request("PATCH", "/x"), deadline=1)
    await fence.send(Request("GET", "/x"), deadline=1)
    assert sent == ["PATCH", "GET"]
    await leader.stop()


def test_times_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="retryPeriod"):
        ElectionConfig("ns", "lease", "me", lease_duration=10, renew_deadline=10, retry_period=2)
