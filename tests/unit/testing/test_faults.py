"""A fault does what its name says and nothing else; the rest of the traffic passes untouched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from selfcheck.leftovers import Tasks
from trainwright.client.errors import UnknownOutcome
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream
from trainwright.clock import VirtualClock
from trainwright.testing.faults import (
    Crash,
    CutStream,
    Delay,
    DropAfter,
    DropBefore,
    ExpireStream,
    Fault,
    FaultyTransport,
    Respond,
    Rule,
)

GET = Request("GET", "/api/v1/namespaces/ns/configmaps/a")
POST = Request("POST", "/api/v1/namespaces/ns/configmaps")


class Lines:
    status = 200
    headers: Mapping[str, str] = {}

    async def read(self) -> bytes:
        return b"".join([line async for line in self.lines()])

    async def lines(self) -> AsyncIterator[bytes]:
        for number in range(5):
            yield b'{"number":%d}' % number

    async def chunks(self) -> AsyncIterator[bytes]:
        async for line in self.lines():
            yield line


class Server:
    """The far end: remembers what really arrived."""

    def __init__(self) -> None:
        self.carried_out: list[Request] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, request: Request, *, deadline: float) -> Answer:
        self.carried_out.append(request)
        return Answer(200, {}, b"{}")

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Stream]:
        self.carried_out.append(request)
        yield Lines()


@pytest.fixture
def server() -> Server:
    return Server()


def faulty(server: Server, fault: Fault, **rule: object) -> FaultyTransport:
    return FaultyTransport(server, [Rule(fault, **rule)])  # type: ignore[arg-type]


async def test_a_request_dropped_before_it_is_sent_never_arrives(server: Server) -> None:
    with pytest.raises(UnknownOutcome):
        await faulty(server, DropBefore()).send(POST, deadline=1)
    assert server.carried_out == []


async def test_a_request_whose_answer_is_lost_was_carried_out(server: Server) -> None:
    with pytest.raises(UnknownOutcome):
        await faulty(server, DropAfter()).send(POST, deadline=1)
    assert server.carried_out == [POST]


async def test_an_injected_status_is_worded_as_a_server_words_it_and_nothing_arrives(server: Server) -> None:
    answer = await faulty(server, Respond(429, retry_after=7)).send(POST, deadline=1)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
    assert msgspec.json.decode(answer.body)["reason"] == "TooManyRequests"
    assert server.carried_out == []


async def test_a_rule_hits_the_nth_match_as_often_as_it_says(server: Server) -> None:
    transport = faulty(server, Respond(500), method="POST", nth=2, times=2)
    statuses = [(await transport.send(request, deadline=1)).status for request in (GET, POST, POST, GET, POST, POST)]
    assert statuses == [200, 200, 500, 200, 500, 200]


async def test_a_rule_can_be_bound_to_writes_and_to_a_path(server: Server) -> None:
    transport = faulty(server, Respond(500), path="/configmaps", writes_only=True, times=None)
    assert (await transport.send(GET, deadline=1)).status == 200
    assert (await transport.send(Request("POST", "/api/v1/namespaces/ns/secrets"), deadline=1)).status == 200
    assert (await transport.send(POST, deadline=1)).status == 500
    assert transport.writes == [Request("POST", "/api/v1/namespaces/ns/secrets"), POST]


async def test_a_rule_can_have_a_condition_of_its_own(server: Server) -> None:
    closed = True
    transport = FaultyTransport(server, [Rule(DropBefore(), when=lambda request: closed, times=None)])
    with pytest.raises(UnknownOutcome):
        await transport.send(GET, deadline=1)
    closed = False
    await transport.send(GET, deadline=1)
    assert server.carried_out == [GET]


async def test_a_delay_takes_its_time_and_no_more_than_the_deadline(server: Server, tasks: Tasks) -> None:
    clock = VirtualClock()
    transport = FaultyTransport(server, [Rule(Delay(5), times=None)], clock)
    patient = tasks.start(transport.send(GET, deadline=30))
    hasty = tasks.start(transport.send(GET, deadline=2))
    await clock.advance(4)
    assert server.carried_out == []
    with pytest.raises(UnknownOutcome):
        await hasty
    await clock.advance(2)
    assert (await patient).status == 200


async def lines_of(transport: FaultyTransport) -> list[bytes]:
    async with transport.stream(GET, deadline=1, idle=1) as stream:
        return [line async for line in stream.lines()]


async def test_a_watch_is_cut_after_so_many_events(server: Server) -> None:
    assert await lines_of(faulty(server, CutStream(2))) == [b'{"number":0}', b'{"number":1}']
    assert await lines_of(faulty(server, CutStream(0))) == []
    with pytest.raises(UnknownOutcome):
        await lines_of(faulty(server, CutStream(2, clean=False)))


async def test_a_watch_expires_as_kube_apiserver_lets_it_expire(server: Server) -> None:
    *passed, last = await lines_of(faulty(server, ExpireStream(1)))
    assert passed == [b'{"number":0}']
    event = msgspec.json.decode(last)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_can_be_refused_at_its_start(server: Server) -> None:
    async with faulty(server, Respond(410)).stream(GET, deadline=1, idle=1) as stream:
        assert stream.status == 410
        assert msgspec.json.decode(await stream.read())["reason"] == "Expired"
    assert server.carried_out == []


@pytest.mark.parametrize(("after", "arrived"), [(True, [POST]), (False, [])])
async def test_after_a_crash_nothing_gets_through_or_returns(
    server: Server, after: bool, arrived: list[Request], tasks: Tasks
) -> None:
    transport = faulty(server, Crash(after), writes_only=True)
    doomed = tasks.start(transport.send(POST, deadline=1))
    await transport.crashed.wait()
    later = tasks.start(transport.send(GET, deadline=1))
    await VirtualClock().settle()
    assert not doomed.done()
    assert not later.done()
    assert server.carried_out == arrived
