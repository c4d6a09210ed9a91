"""The flags of `trainwright logs`: what they mean, and which lines they choose."""

from __future__ import annotations

import pytest

from trainwright.cli.failure import Failure
from trainwright.cli.logs.audience import Said
from trainwright.cli.logs.selection import Selection, ranks_of, since_of


def said(time: int, rank: int | None, text: str = "x") -> Said:
    label = "node-0" if rank is None else f"rank {rank}"
    return Said(f"2026-01-01T00:00:{time:02d}.000000000Z", "pod", "node", 1, label, rank, text)


@pytest.mark.parametrize(
    ("text", "ranks"), [("0", {0}), ("0,2", {0, 2}), ("1-3,7", {1, 2, 3, 7}), (" 4 , 4-5", {4, 5})]
)
def test_ranks(text: str, ranks: set[int]) -> None:
    assert ranks_of(text) == ranks


@pytest.mark.parametrize("text", ["", "a", "3-1", "-1", "1,,2", "0-99999999", "0-999999", "¹"])
def test_what_names_no_ranks_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Failure, match="--rank"):
        ranks_of(text)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("90s", "1969-12-31T23:58:30"),
        ("1m30s", "1969-12-31T23:58:30"),
        ("1969-12-31T23:58:30Z", "1969-12-31T23:58:30"),
        ("1970-01-01T00:58:30+01:00", "1969-12-31T23:58:30"),
    ],
)
def test_an_instant_may_be_a_time_or_how_long_ago(text: str, instant: str) -> None:
    day = 86400.0
    expected = instant.replace("1969-12-31", "1970-01-01") if text[-1] in "sm" else instant
    assert since_of(text, now=day).startswith(expected)


@pytest.mark.parametrize("text", ["", "10", "10x", "yesterday", "2026-02-30T00:00:00Z", "m"])
def test_what_is_no_instant_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Failure, match="such as 10m"):
        since_of(text, now=0.0)


def test_the_last_lines_are_counted_for_each_rank_and_keep_their_order() -> None:
    lines = [said(1, 0, "a"), said(2, 1, "b"), said(3, 0, "c"), said(4, None, "d"), said(5, 0, "e"), said(5, 1, "f")]
    assert [line.text for line in Selection(tail=2).of(lines)] == ["b", "c", "d", "e", "f"]
    assert [line.text for line in Selection(tail=0).of(lines)] == []
    assert [line.text for line in Selection(tail=1, ranks=frozenset({0})).of(lines)] == ["e"]


def test_older_lines_are_left_out() -> None:
    lines = [said(1, 0, "a"), said(2, 0, "b"), said(3, 0, "c")]
    assert [line.text for line in Selection(since="2026-01-01T00:00:02.000000000Z").of(lines)] == ["b", "c"]
