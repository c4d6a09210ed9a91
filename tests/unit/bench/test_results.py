"""Ratios, goals and limits follow from the runs as they were measured."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import compare
from comparison import limits, plot, report, results
from comparison.limits import Limit
from comparison.results import Machine, Ratio, Result, Run
from comparison.scenarios import Outcome

Measured = tuple[str, str, int, dict[str, float]]


def result(*measured: Measured, form: str = "full") -> Result:
    machine = Machine(cores=2, memory_gb=8.0, kernel="6", python="3.11", load=0.1)
    curves = {"created": [0.1] * 100, "seen": [0.2] * 100}
    runs = [
        Run(scenario, who, number, 1.0, 0.1, Outcome(figures, curves=curves))
        for scenario, who, number, figures in measured
    ]
    return Result("python bench/compare.py", "2026-01-01T00:00:00+00:00", "abc", form, machine, runs)


THREE_RUNS = result(
    *(
        ("burst-1000", who, number, {"seconds": seconds})
        for number, (shipped, lifted, ours) in enumerate([(20.0, 10.0, 5.0), (20.0, 10.0, 8.0), (4.0, 10.0, 3.0)], 1)
        for who, seconds in (("reference", shipped), ("reference-lifted", lifted), ("ours", ours))
    )
)


def test_a_ratio_is_over_the_better_reference_of_its_own_run() -> None:
    (ratio,) = results.ratios(THREE_RUNS)
    assert ratio.measure == "burst-1000/seconds"
    assert ratio.runs == [0.5, 0.8, 0.75]
    assert ratio.median == 0.75


def test_what_the_reference_did_not_do_makes_no_ratio() -> None:
    alone = result(("burst-1000", "ours", 1, {"seconds": 5.0}), ("burst-200", "reference", 1, {"seconds": 5.0}))
    assert results.ratios(alone) == []


@pytest.mark.parametrize(("ours", "met"), [(5.9, True), (6.1, False)])
def test_a_goal_is_judged_by_the_median_ratio(ours: float, met: bool) -> None:
    measured = result(
        ("burst-1000", "reference", 1, {"seconds": 10.0, "creators": 1.0}),
        ("burst-1000", "ours", 1, {"seconds": ours, "creators": 1.0}),
    )
    (verdict,) = results.verdicts(measured)
    assert verdict.is_met is met


def test_nobody_is_asked_to_be_faster_than_the_creators() -> None:
    measured = result(
        ("burst-1000", "reference", 1, {"seconds": 10.0, "creators": 8.0}),
        ("burst-1000", "ours", 1, {"seconds": 8.5, "creators": 8.0}),
    )
    (verdict,) = results.verdicts(measured)
    assert verdict.at_most == pytest.approx(0.88)
    assert verdict.is_met


def test_slow_webhooks_do_not_excuse_a_slow_operator() -> None:
    measured = result(
        ("burst-1000", "reference", 1, {"seconds": 10.0, "creators": 4.0}),
        ("burst-1000", "ours", 1, {"seconds": 8.5, "creators": 8.0}),
    )
    (verdict,) = results.verdicts(measured)
    assert (verdict.at_most, verdict.is_met) == (0.6, False)


def test_a_number_is_judged_as_it_is() -> None:
    measured = result(
        ("burst-1000", "reference", 1, {"requests_until": 2.0}), ("burst-1000", "ours", 1, {"requests_until": 1.5})
    )
    (verdict,) = results.verdicts(measured)
    assert (verdict.value, verdict.is_met) == (1.5, False)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    results.write(THREE_RUNS, tmp_path / "deep" / "result.json")
    assert results.read(tmp_path / "deep" / "result.json") == THREE_RUNS


def test_limits_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    known = [Limit("check", "burst-200/seconds", 0.5, [0.4, 0.5, 0.6], "check.json")]
    file.write_text(limits.text_of(known))
    assert limits.read(file) == known


def test_new_limits_replace_those_of_their_form_and_scenario_only() -> None:
    old = [
        Limit("full", "single-100/wait_p50", 0.7, [0.7], "a"),
        Limit("check", "burst-200/seconds", 0.5, [0.5], "b"),
        Limit("check", "single-100/wait_p50", 0.4, [0.4], "b"),
        Limit("check", "single-100/wait_p99", 0.4, [0.4], "b"),
    ]
    new = limits.replaced(old, "check", [Ratio("single-100/wait_p50", [0.2, 0.4, 0.3])], "c")
    assert [(limit.form, limit.measure, limit.ratio) for limit in new] == [
        ("full", "single-100/wait_p50", 0.7),
        ("check", "burst-200/seconds", 0.5),
        ("check", "single-100/wait_p50", 0.3),
    ]


@pytest.mark.parametrize(("ratio", "worse"), [(0.59, False), (0.61, True), (0.1, False)])
def test_more_than_a_fifth_above_its_limit_is_worse(ratio: float, worse: bool) -> None:
    known = [Limit("check", "burst-200/seconds", 0.5, [0.5], "a"), Limit("full", "burst-200/seconds", 0.1, [0.1], "b")]
    (judged,) = limits.judge([Ratio("burst-200/seconds", [ratio])], known, "check")
    assert judged.is_worse is worse


@pytest.mark.parametrize(
    ("figures", "code"),
    [
        ({"seconds": 5.9, "cpu_ms": 4.0}, 0),
        ({"seconds": 6.1, "cpu_ms": 4.0}, 1),  # more than a fifth worse
        ({"seconds": 5.0}, 1),  # a limit of which nothing was measured
    ],
)
def test_the_check_ends_with_a_code_that_make_fails_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, figures: dict[str, float], code: int
) -> None:
    known = [Limit("check", f"burst-200/{name}", 0.5, [0.5], "a") for name in ("seconds", "cpu_ms")]
    (tmp_path / "limits.toml").write_text(limits.text_of(known))
    monkeypatch.setattr(limits.read, "__defaults__", (tmp_path / "limits.toml",))
    measured = result(
        ("burst-200", "reference-lifted", 1, {"seconds": 10.0, "cpu_ms": 10.0}),
        ("burst-200", "ours", 1, figures),
        form="check",
    )
    results.write(measured, tmp_path / "check.json")
    assert compare.judged(measured, tmp_path / "check.json") == code


def test_a_limit_of_which_nothing_was_measured_is_named() -> None:
    known = [Limit("check", "burst-200/seconds", 0.5, [0.5], "a"), Limit("check", "burst-200/cpu_ms", 0.5, [0.5], "a")]
    assert limits.unmeasured([Ratio("burst-200/cpu_ms", [1.0])], known, "check") == ["burst-200/seconds"]


def test_the_report_begins_with_the_ratios() -> None:
    text = report.text(THREE_RUNS)
    assert text.index("0.75   (0.50, 0.80, 0.75)") < text.index("median of 3")


def test_a_busy_machine_is_told_before_everything_else() -> None:
    busy = result(("burst-1000", "ours", 1, {"seconds": 5.0}))
    busy.machine.load = 9.0
    assert report.text(busy).startswith("The machine was busy")


def test_the_plot_is_xml_with_a_bar_and_a_curve_for_every_contender() -> None:
    root = ElementTree.fromstring(plot.svg(THREE_RUNS))  # noqa: S314 - our own text
    kinds = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert kinds.count("rect") == 6  # three in the legend
    assert kinds.count("polyline") == 3
