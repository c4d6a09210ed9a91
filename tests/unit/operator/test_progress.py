"""Progress reports in virtual time: one write at a time, the newest wins, refusals reach whoever asked."""

from __future__ import annotations

import asyncio

import pytest

from trainwright.client import Client, NotFound, UnknownOutcome
from trainwright.client.requests import Request
from trainwright.controlloop import VirtualClock
from trainwright.operator.progress import ProgressWriter
from trainwright.operator.reports import TrainerStatus
from trainwright.operator.tokens import bearer
from unit.operator.memory_api import MemoryApi
from unit.operator.world import train_job


class Scene:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = MemoryApi(self.clock)
        self.api.add("trainjobs", train_job())
        self.writer = ProgressWriter(Client(self.api), self.clock)

    def post(self, percentage: int, time: str) -> asyncio.Task[None]:
        status = TrainerStatus(progress_percentage=percentage, last_updated_time=f"2026-01-01T00:00:{time}Z")
        return asyncio.create_task(self.writer.write("ns", "job", status))

    def stored(self) -> object:
        job = self.api.get("trainjobs", "job")
        assert job is not None
        return job.get("status", {}).get("trainerStatus", {}).get("progressPercentage")


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_reports_that_arrive_while_one_is_written_become_one_write_of_the_newest(scene: Scene) -> None:
    posts = [scene.post(number, f"{number:02}") for number in range(20)]
    await scene.clock.advance(1)
    assert all(post.done() and post.exception() is None for post in posts)
    assert scene.stored() == 19
    assert len(scene.api.writes) <= 2


async def test_order_of_arrival_does_not_matter(scene: Scene) -> None:
    for number in (5, 30, 7):
        scene.post(number, f"{number:02}")
        await scene.clock.advance(1)
    assert scene.stored() == 30


async def test_another_replicas_newer_report_is_not_replaced(scene: Scene) -> None:
    scene.api.change(
        "trainjobs",
        "job",
        {"status": {"trainerStatus": {"progressPercentage": 90, "lastUpdatedTime": "2026-01-01T01:00:00Z"}}},
    )
    scene.post(10, "10")
    await scene.clock.advance(1)
    assert scene.stored() == 90


async def test_a_refusal_reaches_the_one_who_asked_and_the_next_report_is_tried(scene: Scene) -> None:
    failing = True

    def fail(request: Request) -> None:
        if failing and request.is_write:
            raise UnknownOutcome("reset")

    scene.api.before = fail
    first = scene.post(1, "01")
    await scene.clock.advance(1)
    assert isinstance(first.exception(), UnknownOutcome)
    failing = False
    second = scene.post(2, "02")
    await scene.clock.advance(1)
    assert second.exception() is None
    assert scene.stored() == 2


async def test_a_report_whose_sender_hangs_up_is_written_by_those_who_wait_with_it(scene: Scene) -> None:
    first = scene.post(1, "01")
    await scene.clock.settle()
    assert scene.stored() == 1
    impatient, patient = scene.post(3, "03"), scene.post(2, "02")
    await scene.clock.settle()
    impatient.cancel()
    await scene.clock.advance(1)
    assert first.exception() is None
    assert patient.exception() is None
    assert scene.stored() == 3


async def test_a_write_comes_no_sooner_than_the_interval_after_the_last(scene: Scene) -> None:
    scene.post(1, "01")
    await scene.clock.settle()
    scene.post(2, "02")
    await scene.clock.advance(0.1)
    assert scene.stored() == 1
    await scene.clock.advance(0.11)
    assert scene.stored() == 2


async def test_a_job_that_is_gone_is_not_brought_back(scene: Scene) -> None:
    scene.api.remove("trainjobs", "job")
    post = scene.post(1, "01")
    await scene.clock.advance(1)
    assert isinstance(post.exception(), NotFound)
    assert scene.api.get("trainjobs", "job") is None


async def test_a_chatty_job_does_not_hold_up_another(scene: Scene) -> None:
    scene.api.add("trainjobs", train_job("other"))
    for number in range(50):
        scene.post(number, f"{number:02}")
    status = TrainerStatus(progress_percentage=1, last_updated_time="2026-01-01T00:00:00Z")
    other = asyncio.create_task(scene.writer.write("ns", "other", status))
    await scene.clock.settle()
    assert other.done()


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("  BEARER \t abc ", "abc"),
        (None, ""),
        ("", ""),
        ("   ", ""),
        ("Bearer", ""),
        ("abc", ""),
        ("Basic abc", ""),
        ("BearerX abc", ""),
        ("Bearer a b", ""),
    ],
)
def test_a_token_is_taken_from_a_bearer_header_only(header: str | None, token: str) -> None:
    assert bearer(header) == token
