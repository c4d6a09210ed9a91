"""Lines come out whole, in order and once, however their bytes arrive and however often the connection breaks."""

from __future__ import annotations

import pytest

from trainwright.cli.logs.assembly import LONGEST, Assembly, Line, Position

T1, T2, T3 = (f"2026-01-01T00:00:0{number}.000000000Z" for number in (1, 2, 3))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_survive_any_cut(size: int) -> None:
    data = f"{T1} Grüße\n{T1} \n{T2} 10%|█\r20%|██\r\n{T3} no end".encode()
    assembly, lines = Assembly(), []
    for start in range(0, len(data), size):
        lines += assembly.feed(data[start : start + size])
    assert lines == [(T1, "Grüße"), (T1, ""), (T2, "20%|██")]
    assert assembly.unfinished == (T3, "no end")
    assert assembly.end() == [(T3, "no end")]
    assert assembly.end() == []


def test_the_state_of_a_bar_is_known_before_its_line_ends() -> None:
    assembly = Assembly()
    assert assembly.feed(f"{T1} \r 10%|# ".encode()) == []
    assert assembly.unfinished == Line(T1, " 10%|#")
    for step in range(1000):
        assembly.feed(f"\r{step:4d}%|#".encode())
    assert assembly.unfinished == Line(T1, " 999%|#")


def test_a_line_without_end_is_cut_and_not_kept() -> None:
    assembly = Assembly()
    lines = assembly.feed(f"{T1} ".encode())
    for _ in range(5):
        lines += assembly.feed(b"x" * LONGEST)
        assert len(assembly.unfinished.text) <= LONGEST
    lines += assembly.end()
    assert {line.time for line in lines} == {T1}
    assert sum(len(line.text) for line in lines) == 5 * LONGEST


def test_a_resumed_log_repeats_nothing_and_loses_nothing() -> None:
    position = Position()
    seen: list[str] = []
    first = [(T1, "a"), (T2, "b"), (T2, "c")]

    def read(lines: list[tuple[str, str]]) -> None:
        seen.extend(text for time, text in lines if position.is_new(time))

    assert position.resume() is None
    read(first)
    assert position.resume() == T2
    read([(T2, "b"), (T2, "c"), (T2, "d")])
    assert position.resume() == T2
    read([*first, (T2, "d"), (T2, "e"), (T3, "f")])  # a server may give back more than it was asked for
    assert "".join(seen) == "abcdef"


def test_a_clock_that_is_set_back_loses_no_line() -> None:
    position = Position()
    position.resume()
    assert [position.is_new(time) for time in (T3, T1, T2)] == [True, True, True]
