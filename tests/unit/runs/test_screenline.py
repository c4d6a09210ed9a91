"""A line with carriage returns and escape sequences is shown as a terminal would show it."""

from __future__ import annotations

import pytest

from trainwright.runs.screenline import settled, shown


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("plain text", "plain text"),
        ("tab\tstays", "tab\tstays"),
        (" 10%|# \r 50%|#####\r100%|##########", "100%|##########"),
        ("a long line\rshort", "shortg line"),
        ("a long line\r\x1b[Kshort", "short"),
        ("a long line\r           \rdone", "done"),
        ("a windows line\r", "a windows line"),
        ("5/10\b\b\b\b\b6/10", "6/10"),
        ("\x1b[32mgreen\x1b[0m plain", "\x1b[32mgreen\x1b[0m plain"),
        ("\x1b[1m\x1b[32mbar\x1b[0m", "\x1b[1m\x1b[32mbar\x1b[0m"),
        ("up\x1b[A and away\x1b[2J", "up and away"),
        ("\x1b]0;a window's title\x07text", "text"),
        ("\x1b]0;a title without an end", ""),
        ("bell\x07 null\x00 escape\x1b", "bell null escape"),
        ("ab\x1b[4Gd", "ab d"),
        ("\x1b[999999999Cfar", "far"),
    ],
)
def test_a_line_as_seen(written: str, seen: str) -> None:
    assert shown(written) == seen


@pytest.mark.parametrize("first", ["abc   ", "12345\r", "12345\b\b", "\x1b[31mred", "x\r\x1b[5C", "10%\r20%\r30%"])
def test_a_settled_line_goes_on_as_the_whole_one_would(first: str) -> None:
    assert shown(settled(first) + "next") == shown(first + "next")


def test_a_bar_drawn_a_thousand_times_settles_to_one_drawing() -> None:
    bar = "".join(f"\r{step / 10:5.1f}%|{'#' * (step // 20):50}|" for step in range(1001))
    assert len(settled(bar)) < 100
    assert shown(bar) == f"100.0%|{'#' * 50}|"
