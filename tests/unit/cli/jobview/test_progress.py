"""Progress reports as sentences, and how often they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.cli.jobview.progress import ProgressBar, ProgressLines, progress_of


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
        ({"progressPercentage": 50, "metrics": metrics("loss", "step", "total")}, "50 %, 1/1, loss=1"),
        ({"metrics": metrics("step", "loss")}, "step=1, loss=1"),
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


def at(step: int, **status: Any) -> dict[str, Any]:
    counts = [{"name": "step", "value": str(step)}, {"name": "total", "value": "100"}]
    return job(metrics=[{"name": "loss", "value": "0.5"}, *counts], **status)


def test_a_bar_shows_how_far_how_fast_and_how_long() -> None:
    bar = ProgressBar("train")
    assert bar.row(job(), 0.0) is None
    assert bar.row(at(25, progressPercentage=25), 0.0) == f"train  {'█' * 6}{'░' * 18}  25 %, 25/100, loss=0.5"
    row = bar.row(at(50, progressPercentage=50, estimatedRemainingSeconds=10), 5.0)
    assert row == f"train  {'█' * 12}{'░' * 12}  50 %, 50/100, 10s left, 5/s, loss=0.5"


def test_the_pace_is_that_of_the_last_while_and_of_this_epoch() -> None:
    bar = ProgressBar("train")
    for step, now in ((0, 0.0), (10, 100.0), (20, 110.0), (30, 120.0)):
        row = bar.row(at(step), now)
    assert "1/s" in (row or "")
    assert "/s" not in (bar.row(at(1), 130.0) or ""), "a new epoch has no pace yet"
    assert "20 s each" in (bar.row(at(2), 150.0) or "")


def test_without_a_whole_there_is_no_bar() -> None:
    row = ProgressBar("train").row(job(metrics=[{"name": "loss", "value": "0.5"}]), 0.0)
    assert row == "train  loss=0.5"


@pytest.mark.parametrize("step", ["nan", "inf", "-5", "1e400", "many", ""])
def test_odd_counts_break_nothing(step: str) -> None:
    said = [{"name": "step", "value": step}, {"name": "total", "value": step}]
    assert ProgressBar("train").row(job(metrics=said), 0.0)
