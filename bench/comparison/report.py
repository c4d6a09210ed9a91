"""A result as text: ratios first, then figures, then requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from comparison.limits import Judged
from comparison.measures import figure_of
from comparison.results import Result, Verdict, ratios, verdicts

BUSY = 1.0  # load average before a start above which somebody else is at work


def text(result: Result, judged: Sequence[Judged] = ()) -> str:
    lines = [*_caution(result), *_ratios(result), *_goals(verdicts(result)), *_limits(judged), *_figures(result)]
    return "\n".join([*lines, *_requests(result)])


def _caution(result: Result) -> Iterator[str]:
    if result.machine.load > BUSY * result.machine.cores / 2:
        yield (
            f"The machine was busy before the start (load {result.machine.load:.1f} on {result.machine.cores} cores):"
            " these figures only show that the comparison works."
        )
        yield ""


def _ratios(result: Result) -> Iterator[str]:
    yield f"{'ours / the better reference, median (runs)':<62}{'ratio':>8}"
    for ratio in ratios(result):
        runs = ", ".join(f"{run:.2f}" for run in ratio.runs)
        yield f"{title(ratio.measure):<62}{ratio.median:>8.2f}   ({runs})"


def _goals(found: Iterable[Verdict]) -> Iterator[str]:
    yield ""
    yield f"{'goals':<62}{'value':>8}{'at most':>9}"
    for verdict in found:
        what = title(verdict.measure) + (", a number" if verdict.goal.absolute else "")
        yield f"{what:<62}{verdict.value:>8.2f}{verdict.at_most:>9.2f}   {'met' if verdict.is_met else 'MISSED'}"


def _limits(judged: Sequence[Judged]) -> Iterator[str]:
    if not judged:
        return
    yield ""
    yield f"{'limits':<62}{'ratio':>8}{'limit':>9}{'change':>9}"
    for each in judged:
        values = f"{each.ratio.median:>8.2f}{each.limit.ratio:>9.2f}{each.change:>+9.0%}"
        yield f"{title(each.limit.measure):<62}{values}   {'WORSE' if each.is_worse else 'ok'}"


def _figures(result: Result) -> Iterator[str]:
    contenders = result.contenders
    for scenario in result.scenarios:
        taken = [run.took for run in result.runs if run.scenario == scenario]
        yield ""
        header = f"{scenario}  (median of {max(len(result.of(scenario, name)) for name in contenders)})"
        yield f"{header:<62}" + "".join(f"{name:>18}" for name in contenders)
        for figure in result.figures(scenario):
            about = figure_of(figure)
            cells = (_number(result.figure(scenario, name, figure)) for name in contenders)
            unit = f", {about.unit}" if about.unit else ""
            yield f"{'  ' + about.title + unit:<62}" + "".join(f"{cell:>18}" for cell in cells)
        yield f"  (each took {min(taken):.0f} to {max(taken):.0f} s)"


def _requests(result: Result) -> Iterator[str]:
    """Of the first run: counts hardly differ between runs."""
    for scenario in result.scenarios:
        runs = [run for run in result.runs if run.scenario == scenario and run.number == 1 and run.outcome.requests]
        for when in dict.fromkeys(when for run in runs for when in run.outcome.requests):
            whats = dict.fromkeys(what for run in runs for what in run.outcome.requests.get(when, {}))
            if not whats:
                continue
            yield ""
            header = f"{scenario}, requests for each TrainJob: {when}"
            yield f"{header:<62}" + "".join(f"{run.contender:>18}" for run in runs)
            for what in whats:
                cells = (run.outcome.requests.get(when, {}).get(what, 0.0) for run in runs)
                yield f"{'  ' + what:<62}" + "".join(f"{cell:>18.3f}" for cell in cells)


def title(measure: str) -> str:
    scenario, _, figure = measure.partition("/")
    return f"{scenario}: {figure_of(figure).title}"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
