"""Leader election in virtual time: one leader at a time, a hard stop on loss, and no write after it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable

import pytest

from selfcheck.leftovers import Tasks
from trainwright.api.resources import LEASES
from trainwright.client.requests import Request
from trainwright.client.transport import Answer
from trainwright.controlloop.election import Election, ElectionConfig, Fence, NotLeading
from trainwright.testing.faults import DropBefore, Rule
from trainwright.testing.virtualserver import VirtualServer


class Candidate:
    def __init__(self, server: VirtualServer, tasks: Tasks, name: str) -> None:
        config = ElectionConfig("default", "lease", name, lease_duration=15, renew_deadline=10, retry_period=2)
        self.election = Election(server.client, config, server.clock, jitter=lambda: 0.0)
        self.acting = False
        self._tasks = tasks
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = self._tasks.start(self.election.lead(self._act))

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
async def server() -> AsyncIterator[VirtualServer]:
    async with VirtualServer() as server:
        yield server


@pytest.fixture
def candidate(server: VirtualServer, tasks: Tasks) -> Callable[[str], Candidate]:
    """Makes candidates that end with the test."""
    return functools.partial(Candidate, server, tasks)


Named = Callable[[str], Candidate]


async def test_of_two_candidates_one_leads_and_the_other_waits(server: VirtualServer, candidate: Named) -> None:
    first, second = candidate("first"), candidate("second")
    first.start()
    second.start()
    await server.clock.advance(120)
    assert [first.acting, second.acting].count(True) == 1


async def test_a_leader_that_stops_lets_go_so_that_the_next_need_not_wait(
    server: VirtualServer, candidate: Named
) -> None:
    first, second = candidate("first"), candidate("second")
    first.start()
    await server.clock.advance(1)
    second.start()
    await server.clock.advance(5)
    assert first.acting
    await first.stop()
    await server.clock.advance(3)
    assert second.acting


async def test_a_leader_that_stops_at_once_lets_go_too(server: VirtualServer, candidate: Named) -> None:
    leader = candidate("leader")
    leader.start()
    await server.clock.settle()
    assert leader.acting
    await leader.stop()
    lease = server.get(LEASES, "lease")
    assert lease is not None
    assert not lease["spec"].get("holderIdentity")


async def test_a_leader_that_vanishes_is_followed_after_its_lease_and_not_before(
    server: VirtualServer, candidate: Named
) -> None:
    first, second = candidate("first"), candidate("second")
    first.start()
    await server.clock.advance(1)
    second.start()
    await server.clock.advance(1)
    assert first.task is not None
    cut = Rule(DropBefore(), times=None, when=lambda request: b'"first"' in (request.body or b""))
    server.faults.rules.append(cut)
    await server.clock.advance(14)
    assert not second.acting
    await server.clock.advance(5)
    assert second.acting
    assert not first.acting
    server.faults.rules.clear()
    await second.stop()
    await server.clock.advance(5)
    assert first.acting, "it stood for election again"


@pytest.mark.parametrize("failure", ["timeouts", "taken"])
async def test_a_leader_that_cannot_renew_stops_before_anybody_else_may_start(
    server: VirtualServer, candidate: Named, failure: str
) -> None:
    leader = candidate("leader")
    leader.start()
    await server.clock.advance(1)
    assert leader.acting
    if failure == "timeouts":
        server.faults.rules.append(Rule(DropBefore(), times=None))
    else:
        forged = {"spec": {"holderIdentity": "forged"}}
        await server.admin.patch(LEASES, forged, name="lease", namespace="default")
    await server.clock.advance(12)
    assert leader.task is not None
    assert not leader.task.done(), "the process stays"
    assert not leader.acting
    assert not leader.election.is_leading
    server.faults.rules.clear()
    await server.clock.advance(3 if failure == "timeouts" else 20)
    assert leader.acting, "and leads again when the API server is back and nobody else does"


async def test_a_deleted_lease_is_taken_again(server: VirtualServer, candidate: Named) -> None:
    leader = candidate("leader")
    leader.start()
    await server.clock.advance(1)
    await server.admin.delete(LEASES, "lease", "default")
    await server.clock.advance(30)
    assert leader.acting
    assert server.get(LEASES, "lease") is not None


async def test_another_machines_wall_clock_does_not_matter(server: VirtualServer, candidate: Named) -> None:
    first, second = candidate("first"), candidate("second")
    first.start()
    await server.clock.advance(1)
    server.clock.jump_wall(3600)
    second.start()
    await server.clock.advance(60)
    assert first.acting
    assert not second.acting


async def test_after_a_pause_longer_than_the_deadline_no_write_gets_through(
    server: VirtualServer, candidate: Named
) -> None:
    """What SIGSTOP does: time passes, no task runs, then all of them run at once."""
    leader = candidate("leader")
    leader.start()
    await server.clock.advance(1)
    sent: list[str] = []

    class Wire:
        async def send(self, request: Request, *, deadline: float) -> Answer:
            sent.append(request.method)
            return Answer(200, {}, b"{}")

    fence = Fence(Wire(), lambda: leader.election.is_leading)  # type: ignore[arg-type]
    await fence.send(Request("PATCH", "/x"), deadline=1)
    server.clock.spend(11)  # nobody was scheduled meanwhile
    with pytest.raises(NotLeading):
        await fence.send(Request("PATCH", "/x"), deadline=1)
    await fence.send(Request("GET", "/x"), deadline=1)
    assert sent == ["PATCH", "GET"]


def test_times_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="retryPeriod"):
        ElectionConfig("ns", "lease", "me", lease_duration=10, renew_deadline=10, retry_period=2)
