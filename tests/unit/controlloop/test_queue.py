"""The five guarantees of the work queue, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfcheck.leftovers import Tasks
from trainwright.controlloop import VirtualClock, WorkQueue


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> WorkQueue[str]:
    return WorkQueue(clock)


async def test_keys_come_out_in_the_order_they_went_in(queue: WorkQueue[str]) -> None:
    for key in "cab":
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_preferred_keys_come_first_and_the_others_get_their_turn(queue: WorkQueue[str]) -> None:
    for key in "abc":
        queue.add(key)
    for key in "QRSTUVWXYZ":
        queue.add(key, first=True)
    assert "".join([str(await queue.get()) for _ in range(13)]) == "QRSTUVWaXYZbc"


async def test_shares_take_turns_and_keep_their_order(clock: VirtualClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, share=lambda key: key[0])
    for key in ("a1", "a2", "a3", "a4", "b1", "c1", "c2"):
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["a1", "b1", "c1"]
    queue.add("b2")
    assert [await queue.get() for _ in range(5)] == ["a2", "c2", "b2", "a3", "a4"]


@pytest.mark.parametrize("first", [False, True])
async def test_who_has_one_key_does_not_wait_for_who_has_thousands(clock: VirtualClock, first: bool) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, share=lambda key: key.partition("/")[0])
    for number in range(5000):
        queue.add(f"many/{number}", first=first)
    queue.add("one/1", first=first)
    assert "one/1" in [await queue.get() for _ in range(2)]


async def test_a_preferred_key_that_is_worked_on_is_preferred_afterwards(queue: WorkQueue[str]) -> None:
    queue.add("A")
    await queue.get()
    queue.add("b")
    queue.add("A", first=True)
    queue.done("A")
    assert [await queue.get() for _ in range(2)] == ["A", "b"]


async def test_a_key_added_twice_is_worked_on_once(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_key_added_while_worked_on_comes_again_only_after_it_is_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"


async def test_a_key_done_and_not_added_again_stays_away(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.done("a")
    assert len(queue) == 0


async def test_a_delayed_key_becomes_ready_at_its_time_and_not_before(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add_after("a", 10)
    await clock.advance(9.9)
    assert len(queue) == 0
    await clock.advance(0.1)
    assert await queue.get() == "a"


async def test_the_earliest_of_several_delays_counts(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 20)
    await clock.advance(3)
    assert await queue.get() == "a"
    queue.done("a")
    await clock.advance(60)
    assert len(queue) == 0


async def test_each_failure_in_a_row_waits_twice_as_long_up_to_the_limit(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    waits = [queue.retry("a") for _ in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[-1] == 60.0
    queue.forget("a")
    assert queue.retry("a") == 0.005


async def test_a_retry_waits_at_least_as_long_as_the_server_asks(queue: WorkQueue[str]) -> None:
    assert queue.retry("a", at_least=30.0) == 30.0


async def test_closing_wakes_every_worker(queue: WorkQueue[str], tasks: Tasks) -> None:
    workers = [tasks.start(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert await asyncio.gather(*workers) == [None, None, None]


async def test_a_closed_queue_takes_nothing_and_its_delays_are_gone(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 1)
    queue.close()
    queue.add("b")
    await clock.advance(2)
    assert await queue.get() is None


async def test_a_worker_cancelled_when_it_was_just_woken_passes_the_key_on(queue: WorkQueue[str], tasks: Tasks) -> None:
    first, second = tasks.start(queue.get()), tasks.start(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"


@given(st.lists(st.tuples(st.sampled_from("agd"), st.sampled_from("xyz")), max_size=60))
def test_no_key_is_ever_worked_on_twice_at_once_and_none_added_is_lost(steps: list[tuple[str, str]]) -> None:
    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue(VirtualClock())
        working: set[str] = set()
        owed: set[str] = set()
        for action, key in steps:
            if action == "a":
                queue.add(key)
                owed.add(key)
            elif action == "g" and len(queue):
                taken = await queue.get()
                assert taken is not None
                assert taken not in working
                working.add(taken)
                owed.discard(taken)
            elif action == "d" and working:
                finished = working.pop()
                queue.done(finished)
        for key in list(working):
            queue.done(key)
        left = {await queue.get() for _ in range(len(queue))}
        assert left == owed

    asyncio.run(run())
