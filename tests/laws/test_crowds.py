"""Many jobs: a tenant with one does not wait for one with thousands (S5), what fails for ever is tried ever more seldom
(S6), and a long time of coming and going, with faults, leaves nothing behind in the operator (S7).

All in virtual time. `TRAINWRIGHT_CROWD` is how many jobs the first tenant has, `TRAINWRIGHT_CHURN` how many come and
go; `make test-long` asks for 5,000 and for 3,600, an hour of one a second.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, NAMESPACES, TRAIN_JOBS
from trainwright.client.requests import Request
from trainwright.testing import oracle
from trainwright.testing.faults import Delay, Double, DropAfter, DropBefore, Fault, Respond, Rule
from trainwright.testing.plans import rules as plan_rules
from trainwright.testing.plans.stage import Stage, is_counted
from trainwright.testing.plans.workloads import Player, cluster_runtime, train_job

CROWD = int(os.environ.get("TRAINWRIGHT_CROWD", "60"))
CHURN = int(os.environ.get("TRAINWRIGHT_CHURN", "60"))
STUCK = 8
WORKERS = 16


@pytest.fixture(autouse=True)
def kept_by_nobody(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """pytest keeps what is logged, with the errors and keys in it; what the stage judges is enough here."""
    keepers = {caplog.handler, *logging.getLogger().handlers}
    for keeper in keepers:
        keeper.addFilter(_nothing)
    yield
    for keeper in keepers:
        keeper.removeFilter(_nothing)


def _nothing(record: logging.LogRecord) -> bool:
    return False


@pytest.mark.timeout(3600)
async def test_the_one_job_of_a_tenant_does_not_wait_for_the_thousands_of_another() -> None:
    """They were all there before the operator, as after an outage; the one job is the last by name and by time."""
    stage = Stage()
    await stage.begin((), [])
    async with stage:
        player = Player(stage)
        await player.create(CLUSTER_TRAINING_RUNTIMES, cluster_runtime(torch={}))
        for namespace, count in (("many", CROWD), ("small", 1)):
            stage.namespace = namespace
            await player.create(NAMESPACES, {"metadata": {"name": namespace}})
            for number in range(count):
                await player.create(TRAIN_JOBS, train_job(f"hang-{number:04}", suspend=True))
        await stage.start_operators()
        await stage.wait(20)
        made = [request.path for request in stage.replicas[0].writes if "/jobsets/" in request.path]
        assert len(made) == CROWD + 1
        [place] = [number for number, path in enumerate(made) if "/namespaces/small/" in path]
        print(f"the one job was served after {place} of {CROWD}")
        assert place <= 2 * WORKERS


@pytest.mark.timeout(3600)
async def test_what_fails_for_ever_is_tried_at_most_once_a_minute_and_holds_up_nobody() -> None:
    """JobSets of some jobs are refused whenever they are applied."""
    refused = Rule(Respond(422, "never"), method="PATCH", path="/jobsets/hang-never", times=None)
    stage = Stage()
    await stage.begin((), [refused])
    async with stage:
        player = Player(stage)
        await player.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
        await stage.start_operators()
        await player.start("hang-first", cluster_runtime(torch={}))
        for number in range(STUCK):
            await player.create(TRAIN_JOBS, train_job(f"hang-never-{number}", suspend=True))
        await stage.wait(600)
        before = refused.seen
        await stage.wait(600)
        tried = refused.seen - before
        print(f"{tried} attempts for {STUCK} jobs in ten minutes")
        assert STUCK <= tried <= STUCK * 10
        await player.create(TRAIN_JOBS, train_job("job"))
        begun = stage.clock.now()
        await player.until_state("Complete")
        assert stage.clock.now() - begun < 10


class Sometimes(Rule):
    """A fault, drawn anew, for some of the writes."""

    FAULTS: tuple[Fault, ...] = (
        *(DropBefore(), DropAfter(), Double(), Delay(2.0)),
        *(Respond(code) for code in (409, 429, 500, 503, 504)),
    )

    def __init__(self, chance: random.Random, share: float) -> None:
        super().__init__(DropBefore())
        self._chance = chance
        self._share = share
        self.hit = 0

    def hits(self, request: Request) -> bool:
        if not is_counted(request) or self._chance.random() > self._share:
            return False
        self.fault = self._chance.choice(self.FAULTS)
        self.hit += 1
        return True


OURS = tuple(f"trainwright.{room}" for room in ("operator", "controlloop", "pipeline", "plugins", "client", "api"))


def objects_of_the_operator() -> Counter[str]:
    """What is alive, by type, of the rooms that the operator consists of."""
    gc.collect()
    found = (type(it) for it in gc.get_objects())
    ours = (kind for kind in found if str(kind.__module__).startswith(OURS))
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in ours)


@pytest.mark.timeout(7200)
async def test_an_hour_of_coming_and_going_with_faults_leaves_nothing_in_the_operator() -> None:
    sometimes = Sometimes(random.Random(3), 0.1)
    stage = Stage()
    await stage.begin((), [sometimes])
    every = max(1.0, 360.0 / CHURN)
    async with stage:
        player = Player(stage)
        await player.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
        await stage.start_operators()
        await player.start("hang-first", cluster_runtime(torch={}))
        at_first: Counter[str] | None = None
        tasks = 0
        for number in range(CHURN):
            await player.create(TRAIN_JOBS, train_job(f"job-{number}"))
            await stage.wait(every)
            if number >= 20:
                await player.remove(TRAIN_JOBS, f"job-{number - 20}")
            if number % 30 == 29:
                await asyncio.sleep(0)
                _judge(stage)
            if number == CHURN // 3:
                at_first, tasks = await _at_rest(stage)
        at_last, tasks_at_last = await _at_rest(stage)
        assert at_first is not None
        grown = {name: count - at_first[name] for name, count in at_last.items() if count - at_first[name] > 5}
        ends = [player.find(TRAIN_JOBS, f"job-{number}") for number in range(CHURN - 20, CHURN)]
        assert [(job or {})["status"]["state"] for job in ends] == ["Complete"] * 20
        print(f"{CHURN} jobs came and went, {sometimes.hit} faults; {sum(at_first.values())} objects after a third, ")
        print(f"{sum(at_last.values())} at the end; tasks {tasks} and {tasks_at_last}")
        assert sometimes.hit > CHURN // 10
        assert not grown
        assert tasks_at_last <= tasks + 2


async def _at_rest(stage: Stage) -> tuple[Counter[str], int]:
    """Counted when the jobs there are have come to rest, and the history is as long as it gets."""
    await stage.wait(400)
    _judge(stage)
    for replica in stage.replicas:
        for transport in replica.transports:
            transport.asked.clear()
            transport.answered.clear()
    return objects_of_the_operator(), len(asyncio.all_tasks())


def _judge(stage: Stage) -> None:
    """What has changed since the last look breaks no rule that needs no older history."""
    story = oracle.Story(stage.changes)
    rules = (oracle.one_live_jobset, oracle.terminal_is_a_latch, oracle.children_are_owned, oracle.written_once)
    wrong = [str(violation) for rule in rules for violation in rule(story)]
    assert not wrong + list(plan_rules._running_is_left_alone(stage.changes)) + stage.problems
    stage.changes.clear()
