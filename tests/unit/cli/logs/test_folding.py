"""Equal lines of several ranks are shown once, and no rank's order changes."""

from __future__ import annotations

import random

from trainwright.cli.logs.folding import HOLD_SECONDS, MOST_HELD, Folding, label


def test_what_all_ranks_say_is_shown_once() -> None:
    folding = Folding()
    for rank in (3, 0, 2, 1):
        for text in ("loading", "ready"):
            folding.add(rank, text, now=0.0)
    assert list(folding.ready(HOLD_SECONDS)) == [([0, 1, 2, 3], "loading"), ([0, 1, 2, 3], "ready")]


def test_a_line_that_nobody_joins_waits_only_for_a_moment() -> None:
    folding = Folding()
    folding.add(0, "alone", now=1.0)
    assert list(folding.ready(1.0 + HOLD_SECONDS / 2)) == []
    assert list(folding.ready(1.0 + HOLD_SECONDS)) == [([0], "alone")]


def test_a_rank_that_speaks_later_joins_while_the_line_waits() -> None:
    folding = Folding()
    folding.add(0, "first", now=0.0)
    folding.add(1, "first", now=HOLD_SECONDS / 2)
    assert list(folding.ready(HOLD_SECONDS)) == [([0, 1], "first")]
    folding.add(2, "first", now=HOLD_SECONDS)
    assert list(folding.ready(2 * HOLD_SECONDS)) == [([2], "first")]


def test_a_rank_that_repeats_itself_is_shown_to_do_so() -> None:
    folding = Folding()
    for _ in range(3):
        folding.add(0, "again", now=0.0)
    folding.add(1, "again", now=0.0)
    shown = list(folding.ready(0.0, all_of_them=True))
    assert sum(0 in ranks for ranks, _ in shown) == 3
    assert sum(1 in ranks for ranks, _ in shown) == 1


def test_every_rank_keeps_its_order_and_every_line() -> None:
    dice = random.Random(5)
    folding, now = Folding(), 0.0
    said: dict[int, list[str]] = {rank: [] for rank in range(6)}
    shown: dict[int, list[str]] = {rank: [] for rank in range(6)}
    for _ in range(5000):
        rank, text, now = dice.randrange(6), dice.choice("abcde"), now + dice.random() * 0.02
        said[rank].append(text)
        folding.add(rank, text, now)
        for ranks, line in folding.ready(now):
            for each in ranks:
                shown[each].append(line)
    for ranks, line in folding.ready(now, all_of_them=True):
        for each in ranks:
            shown[each].append(line)
    assert shown == said


def test_no_more_than_so_many_lines_wait() -> None:
    folding = Folding()
    for number in range(3 * MOST_HELD):
        folding.add(0, str(number), now=0.0)
    assert len(list(folding.ready(0.0))) == 2 * MOST_HELD


def test_ranks_in_words() -> None:
    assert label([0]) == "rank 0"
    assert label([0, 1, 2, 3, 7]) == "rank 0-3,7"
    assert label([1, 3]) == "rank 1,3"
