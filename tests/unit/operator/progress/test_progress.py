"""Progress reports in virtual time: one write at a time, the newest wins, refusals reach whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from trainwright.api.resources import TRAIN_JOBS
from trainwright.client import NotFound, UnknownOutcome
from trainwright.operator.progress.reports import ReportInvalid, TrainerStatus
from trainwright.operator.progress.server import ProgressWriter
from trainwright.operator.serving.tokens import bearer
from trainwright.testing.faults import DropBefore
from unit.operator.world import World, train_job


class Scene:
    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.writer = ProgressWriter(world.server.client, world.clock)
        self.posts: list[asyncio.Task[None]] = []

    def post(self, percentage: int, time: str, job: str = "job") -> asyncio.Task[None]:
        return self.post_at(percentage, f"2023-01-01T00:00:{time}Z", job)

    def post_at(self, percentage: int, time: str, job: str = "job") -> asyncio.Task[None]:
        status = TrainerStatus(progress_percentage=percentage, last_updated_time=time)
        found = self.world.find(TRAIN_JOBS, job)
        uid = found["metadata"]["uid"] if found is not None else "gone"
        self.posts.append(asyncio.create_task(self.writer.write("ns", job, uid, status)))
        return self.posts[-1]

    def stored(self) -> object:
        return self.world.status().get("trainerStatus", {}).get("progressPercentage")

    async def end(self) -> None:
        for post in self.posts:
            post.cancel()
        await asyncio.gather(*self.posts, return_exceptions=True)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A TrainJob, and a writer of its progress; no operator."""
    async with World(start=False) as world:
        await world.add(TRAIN_JOBS, train_job())
        scene = Scene(world)
        yield scene
        await scene.end()


async def test_reports_that_arrive_while_one_is_written_become_one_write_of_the_newest(scene: Scene) -> None:
    posts = [scene.post(number, f"{number:02}") for number in range(20)]
    await scene.clock.advance(1)
    assert all(post.done() and post.exception() is None for post in posts)
    assert scene.stored() == 19
    assert len(scene.world.writes) <= 2


async def test_order_of_arrival_does_not_matter(scene: Scene) -> None:
    for number in (5, 30, 7):
        scene.post(number, f"{number:02}")
        await scene.clock.advance(1)
    assert scene.stored() == 30


async def test_another_replicas_newer_report_is_not_replaced(scene: Scene) -> None:
    newer = {"progressPercentage": 90, "lastUpdatedTime": "2023-01-01T01:00:00Z"}
    await scene.world.change_status(TRAIN_JOBS, "job", {"trainerStatus": newer})
    scene.post(10, "10")
    await scene.clock.advance(1)
    assert scene.stored() == 90


async def test_a_refusal_reaches_the_one_who_asked_and_the_next_report_is_tried(scene: Scene) -> None:
    scene.world.fail(DropBefore(), method="PATCH")
    first = scene.post(1, "01")
    await scene.clock.advance(1)
    assert isinstance(first.exception(), UnknownOutcome)
    scene.world.mend()
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
    await scene.world.remove(TRAIN_JOBS, "job")
    post = scene.post(1, "01")
    await scene.clock.advance(1)
    assert isinstance(post.exception(), NotFound)
    assert scene.world.find(TRAIN_JOBS, "job") is None


async def test_a_chatty_job_does_not_hold_up_another(scene: Scene) -> None:
    await scene.world.add(TRAIN_JOBS, train_job("other"))
    for number in range(50):
        scene.post(number, f"{number:02}")
    other = scene.post(1, "00", job="other")
    await scene.clock.settle()
    assert other.done()


async def test_a_job_made_anew_under_a_name_begins_with_no_report_of_its_predecessor(scene: Scene) -> None:
    scene.post(90, "50")
    await scene.clock.advance(1)
    await scene.world.remove(TRAIN_JOBS, "job")
    await scene.world.add(TRAIN_JOBS, train_job())
    scene.post(10, "10")
    await scene.clock.advance(1)
    assert scene.stored() == 10


async def test_a_report_from_the_future_is_refused_and_one_that_is_stored_hides_no_other(scene: Scene) -> None:
    post = scene.post_at(50, "2099-01-01T00:00:00Z")
    await scene.clock.advance(1)
    assert isinstance(post.exception(), ReportInvalid)
    assert scene.stored() is None
    future = {"progressPercentage": 90, "lastUpdatedTime": "2099-01-01T00:00:00Z"}
    await scene.world.change_status(TRAIN_JOBS, "job", {"trainerStatus": future})
    scene.post(10, "10")
    await scene.clock.advance(1)
    assert scene.stored() == 10


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
