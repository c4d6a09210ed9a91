"""A stream of lines that breaks off goes on where it stopped: no line lost, none twice."""

from __future__ import annotations

from collections import deque

import pytest

from trainwright.cli.lines import _Attributed
from trainwright.cli.ranks import Speaker
from trainwright.cli.terminal import Terminal


def test_a_resumed_stream_repeats_nothing_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _Attributed(Speaker("node-0", 0, 1), Terminal(), deque())
    assert lines.resume() is None
    first = ["2026-01-01T00:00:01.000Z a", "2026-01-01T00:00:02.000Z b", "2026-01-01T00:00:02.000Z c"]
    for line in first:
        lines.add(line)
    assert lines.resume() == "2026-01-01T00:00:02.000Z"
    for line in [*first, "2026-01-01T00:00:02.000Z d", "2026-01-01T00:00:03.000Z e"]:
        lines.add(line)
    assert capsys.readouterr().out.splitlines() == [f"[rank 0] {text}" for text in "abcde"]


def test_the_tail_keeps_the_last_lines_as_they_were_said() -> None:
    tail: deque[str] = deque(maxlen=2)
    lines = _Attributed(Speaker("node-1", 1, 2), Terminal(), tail)
    for number in range(4):
        lines.add(f"2026-01-01T00:00:0{number}.000Z [default0]:line {number}")
    assert list(tail) == ["line 2", "line 3"]


def test_a_ranks_last_words_are_not_drowned_by_its_launcher() -> None:
    tail: deque[str] = deque(maxlen=20)
    lines = _Attributed(Speaker("node-1", 1, 2), Terminal(), tail)
    lines.add("2026-01-01T00:00:01.000Z torchrun starts")
    lines.add("2026-01-01T00:00:02.000Z [default0]:RuntimeError: the cause")
    lines.add("2026-01-01T00:00:03.000Z torchrun's own traceback")
    assert list(tail) == ["RuntimeError: the cause"]
