"""A controller's list of work: each entry until it is done, and one that fails does not disturb the others."""

from __future__ import annotations

import asyncio

import pytest

from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.controllers.worklist import Worklist
from trainwright.embedded.apiserver.errors import StatusError


class Work:
    """Looks at names; each ends as `outcomes` says, or is done."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.looks: list[tuple[str, float]] = []
        self.outcomes: dict[str, bool | Exception] = {}
        self.list: Worklist[str] = Worklist("worker", clock, self.look, gather=0.01)

    async def look(self, name: str) -> bool:
        self.looks.append((name, round(self.clock.now() - 1000.0, 3)))
        outcome = self.outcomes.get(name, True)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def __aenter__(self) -> Work:
        self.task = asyncio.create_task(self.list.run(self._before))
        await self.clock.settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _before(self) -> None: ...


async def test_what_is_added_in_a_burst_is_looked_at_once(clock: VirtualClock) -> None:
    async with Work(clock) as work:
        for name in ("a", "b", "a"):
            work.list.add(name)
        await clock.advance(10)
    assert work.looks == [("a", 0.01), ("b", 0.01)]


async def test_what_is_not_done_comes_again_by_itself(clock: VirtualClock) -> None:
    async with Work(clock) as work:
        work.outcomes["a"] = False
        work.list.add("a")
        await clock.advance(1.5)
        assert "a" in work.list
        work.outcomes["a"] = True
        await clock.advance(10)
        assert "a" not in work.list
    assert [moment for _, moment in work.looks] == [0.01, 1.02, 2.03]


async def test_a_change_brings_it_back_early_and_only_once(clock: VirtualClock) -> None:
    async with Work(clock) as work:
        work.outcomes["a"] = False
        work.list.add("a")
        await clock.advance(0.5)
        work.outcomes["a"] = True
        work.list.add("a")
        await clock.advance(10)
    assert [moment for _, moment in work.looks] == [0.01, 0.51]


async def test_one_that_fails_comes_again_ever_later_and_the_others_go_on(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with Work(clock) as work:
        work.outcomes["bad"] = ValueError("a defect")
        work.outcomes["refused"] = StatusError(500, "the disk is full")
        for name in ("bad", "refused", "good"):
            work.list.add(name)
        await clock.advance(5)
    assert [moment for name, moment in work.looks if name == "bad"] == [0.01, 2.02]
    assert len([name for name, _ in work.looks if name == "refused"]) == 5
    assert [name for name, _ in work.looks].count("good") == 1
    assert "worker: bad could not be worked on" in caplog.text
    assert "ValueError: a defect" in caplog.text


async def test_cleared_it_looks_at_nothing(clock: VirtualClock) -> None:
    async with Work(clock) as work:
        work.outcomes["a"] = False
        work.list.add("a")
        await clock.advance(0.5)
        work.list.clear()
        await clock.advance(10)
    assert len(work.looks) == 1


async def test_several_are_looked_at_at_once_and_the_rest_after_them(clock: VirtualClock) -> None:
    """Their writes then share one commit: a cascade of deletions waits once for the disk, not once for each object."""
    at_work: list[str] = []
    most = 0

    async def look(name: str) -> bool:
        nonlocal most
        at_work.append(name)
        most = max(most, len(at_work))
        await clock.sleep(1)
        at_work.remove(name)
        return True

    async def before() -> None: ...

    work: Worklist[str] = Worklist("worker", clock, look, gather=0.0, at_once=2)
    for name in ("a", "b", "c"):
        work.add(name)
    task = asyncio.create_task(work.run(before))
    try:
        await clock.advance(1.5)
        assert (at_work, most) == (["c"], 2)
        await clock.advance(1)
        assert not at_work
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
