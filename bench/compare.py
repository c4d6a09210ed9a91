"""The operator beside Kubeflow Trainer on the same control plane and the same load; ratios first.

    python bench/compare.py [--runs 3] [--only burst-1000,single-100] [--contenders ours,reference-lifted]
    python bench/compare.py --growth            what each TrainJob costs, up to 10,000 of them
    python bench/compare.py --check             the short form; fails when a ratio is worse than bench/limits.toml
    python bench/compare.py --show FILE.json    tables and plot of a result once more
    python bench/compare.py --set-limits FILE.json [--limits-of check]

Every contender of every scenario has a control plane of its own with a fresh etcd; contenders alternate within a run.
Needs the programs that `make test-kube` builds, and Kubeflow Trainer, which is built by Go at the first call.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from comparison import growth, limits, plot, report, results
from comparison.contenders import CONTENDERS, DEFAULT, LIFTED, OURS
from comparison.measures import figure_of
from comparison.programs import ROOT, compile_ours
from comparison.results import NOBODY, Result, Run
from comparison.scenarios import kind_and_count, play
from comparison.stage import load_average

FULL = (
    "creators-1000",
    "burst-200",
    "burst-1000",
    "burst-5000",
    "jobset-1000",
    "complete-1000",
    "single-100",
)
CHECK, CHECK_RUNS = ("burst-1000", "single-100"), 2
GROWTH = ("growth", "foreign")


def main() -> int:
    arguments = _arguments()
    if arguments.set_limits:
        return _set_limits(arguments.set_limits, arguments.limits_of)
    if arguments.show:
        return judged(results.read(arguments.show), arguments.show)
    compile_ours()
    target: Path = arguments.result or ROOT / "build" / "bench" / f"{arguments.form}.json"
    if arguments.resume:
        result = results.read(target)
    else:
        result = results.begin(f"python bench/compare.py {shlex.join(sys.argv[1:])}".strip(), arguments.form)
    done = {(run.scenario, run.contender, run.number) for run in result.runs}
    for scenario, contender, number in _programme(arguments):
        if (scenario, contender, number) in done:
            continue
        result.runs.append(_run(scenario, contender, number, arguments))
        results.write(result, target)  # after each: hours of measuring are not lost with the last minute
    return judged(result, target)


def _programme(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Which scenario is played by whom, in which order: whoever began last time comes later this time."""
    names: list[str] = arguments.contenders
    for number in range(1, arguments.runs + 1):
        turn = number % len(names)
        for scenario in arguments.only:
            alone = scenario.startswith("creators-")
            for contender in [NOBODY] if alone else names[turn:] + names[:turn]:
                yield scenario, contender, number


def _run(scenario: str, contender: str, number: int, arguments: argparse.Namespace) -> Run:
    directory = Path(tempfile.mkdtemp(prefix="compare-"))
    load, began = load_average(), time.monotonic()
    print(f"== run {number}: {scenario}, {contender} (load {load:.1f})", file=sys.stderr, flush=True)
    if scenario == "growth":
        outcome = growth.grow(CONTENDERS[contender], directory, most=arguments.most)
    elif scenario == "foreign":
        outcome = growth.foreign(CONTENDERS[contender], directory)
    else:
        outcome = play(scenario, CONTENDERS.get(contender), directory)
    if arguments.keep:
        print(f"== its logs are in {directory}", file=sys.stderr)
    else:
        shutil.rmtree(directory)  # kept when something failed
    return Run(scenario, contender, number, round(time.monotonic() - began, 1), load, outcome)


def judged(result: Result, path: Path) -> int:
    """Prints a result and draws it. The exit code: 1 when a check found something worse, or not all of it."""
    known, found = limits.read(), results.ratios(result)
    verdicts = limits.judge(found, known, result.form)
    print(report.text(result, verdicts))
    drawing = path.with_suffix(".svg")
    drawing.write_text(plot.svg(result))
    print(f"\nresult: {path}, plot: {drawing}", file=sys.stderr)
    if result.form != "check":
        return 0
    missing = limits.unmeasured(found, known, result.form)
    if missing or not verdicts:
        print(f"not measured though limited: {', '.join(missing) or 'everything'}", file=sys.stderr)
        return 1
    return 1 if any(each.is_worse for each in verdicts) else 0


def _set_limits(path: Path, form: str | None) -> int:
    """A result of the full form can set the limits of the check where it has the check's scenarios."""
    result = results.read(path)
    form = form or result.form
    scenarios = CHECK if form == "check" else result.scenarios
    limited = [
        ratio
        for ratio in results.ratios(result)
        if figure_of(ratio.measure.partition("/")[2]).limited and ratio.measure.partition("/")[0] in scenarios
    ]
    limits.FILE.write_text(limits.text_of(limits.replaced(limits.read(), form, limited, path.name)))
    print(f"limits of the form {form} written to {limits.FILE}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--runs", type=int, help=f"how often everything is measured (default: 3, with --check {CHECK_RUNS})"
    )
    parser.add_argument("--only", type=_scenarios, help=f"scenarios as KIND-COUNT (default: {','.join(FULL)})")
    parser.add_argument("--contenders", type=_contenders, help=f"of {', '.join(CONTENDERS)} (default: three)")
    parser.add_argument("--most", type=int, default=10_000, help="how far --growth goes (default: 10,000)")
    parser.add_argument("--result", type=Path, help="where the result goes (default: build/bench/FORM.json)")
    parser.add_argument("--resume", action="store_true", help="go on where the result's file ends")
    parser.add_argument("--keep", action="store_true", help="keep the logs of control planes and operators")
    parser.add_argument("--limits-of", choices=("full", "check"), help="with --set-limits: of another form")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--growth", action="store_true", help="what each TrainJob costs, up to 10,000 of them")
    form.add_argument("--check", action="store_true", help="the short form, judged by bench/limits.toml")
    form.add_argument("--show", type=Path, metavar="FILE", help="print and plot a result once more")
    form.add_argument("--set-limits", type=Path, metavar="FILE", help="make a result's ratios the limits of its form")
    arguments = parser.parse_args()
    arguments.form = "growth" if arguments.growth else "check" if arguments.check else "full"
    arguments.runs = arguments.runs or (CHECK_RUNS if arguments.check else 3)
    whole = arguments.form == "full"
    arguments.only = arguments.only or list(FULL if whole else CHECK if arguments.check else GROWTH)
    arguments.contenders = arguments.contenders or (
        [contender.name for contender in DEFAULT] if whole else [LIFTED.name, OURS.name]
    )
    return arguments


def _scenarios(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name in GROWTH:
            continue
        try:
            kind_and_count(name)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return names


def _contenders(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in CONTENDERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
