"""What a person at a terminal sees of the lines, and when."""

from __future__ import annotations

import pytest

from trainwright.cli.console.terminal import Terminal
from trainwright.cli.logs.audience import UNFINISHED_SECONDS, People, Said
from trainwright.cli.logs.folding import HOLD_SECONDS


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def said(rank: int | None, text: str) -> Said:
    label = "node-0" if rank is None else f"rank {rank}"
    return Said("2026-01-01T00:00:00.000000000Z", "pod", "node", 1, label, rank, text)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def people(time: Time) -> People:
    terminal = Terminal(time)
    terminal.is_live = True
    return People(terminal, clock=time)


Captured = pytest.CaptureFixture[str]


def test_the_lines_of_one_rank_wait_for_nobody(people: People, capsys: Captured) -> None:
    people.expect(1)
    people.hear([said(0, "at once")])
    assert capsys.readouterr().out == "[rank 0] at once\n"


def test_the_lines_of_several_ranks_wait_for_each_other(people: People, time: Time, capsys: Captured) -> None:
    people.expect(2)
    people.hear([said(0, "together")])
    assert capsys.readouterr().out == ""
    people.hear([said(1, "together")])
    time.now += HOLD_SECONDS
    people.tick()
    assert capsys.readouterr().out == "[rank 0-1] together\n"


def test_no_line_that_waits_is_lost_at_the_end(people: People, capsys: Captured) -> None:
    people.expect(2)
    people.hear([said(1, "the last word"), said(None, "of the launcher")])
    people.end()
    assert sorted(capsys.readouterr().out.splitlines()) == ["[node-0] of the launcher", "[rank 1] the last word"]


def test_an_unfinished_line_is_shown_when_it_stays_so(people: People, time: Time, capsys: Captured) -> None:
    people.hear_unfinished("a", said(0, "10%|#"))
    people.tick()
    assert capsys.readouterr().out == ""
    time.now += UNFINISHED_SECONDS
    people.hear_unfinished("a", said(0, "20%|##"))
    people.tick()
    assert capsys.readouterr().out == "[rank 0] 20%|##"
    people.hear_unfinished("a", None)
    time.now += 1
    people.tick()
    assert capsys.readouterr().out == "\r\x1b[J"


def test_a_rank_that_nobody_asked_for_is_not_heard(time: Time, capsys: Captured) -> None:
    people = People(Terminal(time), ranks=frozenset({1}), clock=time)
    people.hear([said(0, "no"), said(1, "yes"), said(None, "no")])
    assert capsys.readouterr().out == "[rank 1] yes\n"
