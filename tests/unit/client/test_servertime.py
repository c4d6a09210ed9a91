"""What `Date` headers tell about the server's clock, and how requests are spread over time."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from trainwright.client.ratelimit import RateLimited, resource_of
from trainwright.client.requests import Request
from trainwright.client.servertime import ServerTime
from trainwright.client.transport import Answer


class Machine:
    """Its wall clock can be set; its steady one only goes on."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000.25
        self.steady = 71.0

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def server_time(self) -> ServerTime:
        return ServerTime(lambda: self.wall, lambda: self.steady)


def date(time: float) -> str:
    return formatdate(int(time), usegmt=True)


def test_without_a_sign_to_the_contrary_our_own_clock_is_right() -> None:
    machine = Machine()
    it = machine.server_time()
    assert it.now() == machine.wall
    machine.passes(7)
    assert it.now() == machine.wall
    it.observe(date(machine.wall), machine.wall - 0.1, machine.wall)
    assert it.offset == 0.0


@pytest.mark.parametrize("skew", [600.0, -600.0, 5.0])
def test_a_skewed_clock_is_corrected_to_within_a_second(skew: float) -> None:
    machine = Machine()
    it = machine.server_time()
    for step in (0.0, 0.3, 0.35, 0.35, 0.2):
        machine.passes(step)
        it.observe(date(machine.wall + skew), machine.wall - 0.01, machine.wall)
    assert abs(it.offset - skew) < 0.6


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_wall_clock_that_is_set_between_two_answers_moves_nothing(jump: float) -> None:
    machine = Machine()
    it = machine.server_time()
    it.observe(date(machine.wall), machine.wall, machine.wall)
    before = it.now()
    machine.wall += jump  # somebody sets our clock
    machine.passes(5)
    assert it.now() == before + 5


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_server_whose_clock_is_set_is_followed(jump: float) -> None:
    machine = Machine()
    it = machine.server_time()
    it.observe(date(machine.wall), machine.wall, machine.wall)
    it.observe(date(machine.wall + jump), it.local(), it.local())
    assert abs(it.now() - (machine.wall + jump)) < 1.1


def test_the_machines_own_clocks_are_taken_by_default() -> None:
    assert abs(ServerTime().now() - time.time()) < 1.0


@pytest.mark.parametrize("text", [None, "yesterday", "", "Thu, 99 Jan 2026 00:00:00 GMT"])
def test_what_is_no_date_changes_nothing(text: str | None) -> None:
    it = Machine().server_time()
    it.observe(text, 0.0, 1.0)
    assert it.offset == 0.0


class Echo:
    async def send(self, request: Request, *, deadline: float) -> Answer:
        return Answer(200, {}, b"{}")


async def test_a_burst_passes_at_once_and_then_so_many_a_second() -> None:
    now = 0.0
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    limited = RateLimited(Echo(), qps=10.0, burst=3, now=lambda: now, sleep=sleep)  # type: ignore[arg-type]
    for _ in range(5):
        await limited.send(Request("GET", "/"), deadline=1)
    assert waits == pytest.approx([0.1, 0.2])
    now = 100.0
    waits.clear()
    for _ in range(3):
        await limited.send(Request("GET", "/"), deadline=1)
    assert waits == []


async def test_each_kind_has_a_limit_of_its_own() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    limited = RateLimited(Echo(), qps=10.0, burst=1, now=lambda: 0.0, sleep=sleep)  # type: ignore[arg-type]
    for path in ("/api/v1/namespaces/a/pods/x", "/apis/batch/v1/namespaces/a/jobs/x", "/apis/batch/v1/jobs"):
        await limited.send(Request("GET", path), deadline=1)
    assert waits == pytest.approx([0.1])  # of the second request for Jobs


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/pods", "/pods"),
        ("/api/v1/namespaces/ns/pods/x/log", "/pods"),
        ("/api/v1/namespaces", "/namespaces"),
        ("/api/v1/namespaces/ns", "/namespaces"),
        ("/apis/batch/v1/namespaces/ns/jobs/x/status", "batch/jobs"),
        ("/version", "version"),
    ],
)
def test_a_path_tells_its_kind(path: str, resource: str) -> None:
    assert resource_of(path) == resource
