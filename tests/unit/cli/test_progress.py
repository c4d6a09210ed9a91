"""What a training says of its progress, in words, and how often it is shown."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.cli.progress import ProgressLines, progress_of


def job(*, ended: bool = False, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Complete", "status": "True"}] if ended else []
    return {"status": {"conditions": conditions, "trainerStatus": status}}


def metrics(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "value": "1"} for name in names]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, ""),
        ({"progressPercentage": 0}, "0 %"),
        ({"progressPercentage": 42, "estimatedRemainingSeconds": 59}, "42 %, 59s left"),
        ({"estimatedRemainingSeconds": 125}, "2m5s left"),
        ({"estimatedRemainingSeconds": 1234}, "20m left"),
        ({"estimatedRemainingSeconds": 3 * 3600 + 300}, "3h5m left"),
        ({"estimatedRemainingSeconds": 400 * 3600}, "400h left"),
        ({"progressPercentage": 100, "estimatedRemainingSeconds": 0}, "100 %"),
        ({"metrics": [{"name": "loss", "value": "0.12"}]}, "loss=0.12"),
        ({"metrics": metrics("a", "b", "c", "d", "e")}, "a=1, b=1, c=1, and 2 more"),
    ],
)
def test_progress_in_words(status: dict[str, Any], words: str) -> None:
    assert progress_of(job(**status)) == words


def test_a_job_that_never_reported_says_nothing() -> None:
    assert progress_of({}) == progress_of({"status": {}}) == ""


def test_a_job_that_has_ended_has_no_time_left() -> None:
    assert progress_of(job(ended=True, progressPercentage=90, estimatedRemainingSeconds=5)) == "90 %"


def test_the_first_report_is_shown_at_once_and_the_next_after_a_while() -> None:
    lines = ProgressLines()
    assert lines.wait(job(), 100.0) is None
    assert lines.line(job(progressPercentage=1), 100.0) == "1 %"
    assert lines.line(job(progressPercentage=2), 101.0) is None
    assert lines.wait(job(progressPercentage=2), 101.0) == 2.0
    assert lines.line(job(progressPercentage=3), 103.0) == "3 %"
    assert lines.wait(job(progressPercentage=3), 103.0) is None


def test_what_has_not_changed_is_not_shown_again() -> None:
    lines = ProgressLines()
    assert lines.line(job(progressPercentage=1), 100.0) == "1 %"
    assert lines.line(job(progressPercentage=1), 200.0) is None


def test_the_last_report_is_shown_however_soon_it_comes() -> None:
    lines = ProgressLines()
    lines.line(job(progressPercentage=1), 100.0)
    assert lines.line(job(progressPercentage=100), 100.1, last=True) == "100 %"
