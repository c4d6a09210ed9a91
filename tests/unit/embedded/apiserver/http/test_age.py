"""Ages as kubectl prints them."""

from __future__ import annotations

import pytest

from trainwright.api.times import seconds_of
from trainwright.embedded.apiserver.http.age import age_of, human_duration, parse

M, H, D, Y = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * M, "2m"),
        (4 * M + 24, "4m24s"),
        (10 * M, "10m"),
        (179 * M, "179m"),
        (3 * H, "3h"),
        (7 * H + 59 * M, "7h59m"),
        (8 * H + 30 * M, "8h"),
        (47 * H, "47h"),
        (48 * H, "2d"),
        (3 * D + 5 * H, "3d5h"),
        (8 * D + 5 * H, "8d"),
        (2 * Y - D, "729d"),
        (2 * Y, "2y"),
        (3 * Y + 20 * D, "3y20d"),
        (9 * Y + 20 * D, "9y"),
    ],
)
def test_durations_get_coarser_with_age(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_an_age_counts_from_the_time_given() -> None:
    assert age_of("2026-01-01T07:00:00Z", seconds_of("2026-01-01T12:00:00Z")) == "5h"


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_an_age_of_nothing_is_unknown(text: str | None) -> None:
    assert parse(text) is None
    assert age_of(text, 0.0) == "<unknown>"
