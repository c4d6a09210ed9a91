"""Back-off and deadline, in virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from trainwright.clock import VirtualClock
from trainwright.initializers.errors import Transient, Unreachable
from trainwright.initializers.retry import LONGEST_PAUSE, Patience, persist


class Trouble:
    """A question that is never answered, and when it was asked."""

    def __init__(self, clock: VirtualClock, retry_after: float | None = None) -> None:
        self._clock = clock
        self._retry_after = retry_after
        self.asked: list[float] = []

    async def ask(self) -> None:
        self.asked.append(self._clock.now())
        raise Transient("nobody there", self._retry_after)


async def given_up(clock: VirtualClock, trouble: Trouble, seconds: float) -> tuple[Unreachable, list[str]]:
    said: list[str] = []
    asking = asyncio.ensure_future(persist(Patience("hf://a/b", seconds, clock, said.append), trouble.ask))
    await clock.advance(seconds + 1)
    with pytest.raises(Unreachable) as raised:
        await asking
    return raised.value, said


async def test_pauses_grow_and_the_deadline_ends_them() -> None:
    clock = VirtualClock()
    trouble = Trouble(clock)
    error, said = await given_up(clock, trouble, 300)
    pauses = [after - before for before, after in pairwise(trouble.asked)]
    assert all(0 < pause <= LONGEST_PAUSE for pause in pauses)
    assert all(0.5 * 2**number * 0.5 <= pause for number, pause in enumerate(pauses[:6]))
    assert trouble.asked[-1] - trouble.asked[0] == pytest.approx(300)  # once more at the very end
    assert str(error).startswith("hf://a/b: nobody there; given up after 300 s without a byte. Check the network")
    assert said == ["hf://a/b: nobody there; trying again for 300 s"]


async def test_the_server_says_when() -> None:
    clock = VirtualClock()
    trouble = Trouble(clock, retry_after=100)
    await given_up(clock, trouble, 250)
    assert [asked - trouble.asked[0] for asked in trouble.asked] == [0, 100, 200, 250]


async def test_progress_moves_the_deadline_but_not_over_the_same_ground() -> None:
    clock = VirtualClock()
    patience = Patience("x", 10, clock, lambda _: None)
    for position in (5, 10, 15):
        await clock.advance(9)
        patience.reached(position)
    for position in (5, 10, 15):
        await clock.advance(4)
        patience.reached(position)
    with pytest.raises(Unreachable):
        await patience.pause(Transient("cut"))
