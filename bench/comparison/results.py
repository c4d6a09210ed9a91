"""The result file: every run with its figures as they were measured, and what follows from them.

Ratios are made within a run, since its contenders met the same machine in the same minutes: ours over the better of
the reference's configurations. What is reported is the median over the runs.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import msgspec

from comparison.contenders import CONTENDERS, OURS
from comparison.measures import GOALS, Goal, figure_of
from comparison.programs import ROOT
from comparison.scenarios import Outcome

SMALLEST = 1e-9
NOBODY = "nobody"


class Machine(msgspec.Struct):
    """Where it was measured. `load` is the load average before the first run: on a busy machine figures are noise."""

    cores: int
    memory_gb: float
    kernel: str
    python: str
    load: float


class Run(msgspec.Struct):
    scenario: str
    contender: str
    number: int
    took: float
    load: float
    outcome: Outcome


class Result(msgspec.Struct):
    """What a whole comparison leaves behind, as JSON."""

    command: str
    date: str
    revision: str
    form: str
    machine: Machine
    runs: list[Run] = []

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(run.scenario for run in self.runs))

    @property
    def contenders(self) -> list[str]:
        """In the order in which they are shown, whoever began."""
        met = {run.contender for run in self.runs}
        return [name for name in (*CONTENDERS, NOBODY) if name in met]

    def of(self, scenario: str, contender: str) -> list[Run]:
        return [run for run in self.runs if (run.scenario, run.contender) == (scenario, contender)]

    def figure(self, scenario: str, contender: str, figure: str) -> float | None:
        """The median over the runs."""
        found = [run.outcome.figures[figure] for run in self.of(scenario, contender) if figure in run.outcome.figures]
        return median(found) if found else None

    def figures(self, scenario: str) -> list[str]:
        return list(
            dict.fromkeys(name for run in self.runs if run.scenario == scenario for name in run.outcome.figures)
        )


class Ratio(msgspec.Struct, frozen=True):
    """Of one measure: one ratio for each run in which both were measured."""

    measure: str
    runs: list[float]

    @property
    def median(self) -> float:
        return median(self.runs)


def begin(command: str, form: str) -> Result:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    machine = Machine(
        cores=os.cpu_count() or 1,
        memory_gb=round(memory, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        load=os.getloadavg()[0],
    )
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Result(command, now, _revision(), form, machine)


def ratios(result: Result) -> list[Ratio]:
    """Every measure that ours and the reference share, in the order in which they were measured."""
    found = []
    for scenario in result.scenarios:
        for figure in result.figures(scenario):
            if figure_of(figure).compared:
                runs = list(_ratios_of(result, scenario, figure))
                if runs:
                    found.append(Ratio(f"{scenario}/{figure}", runs))
    return found


def _ratios_of(result: Result, scenario: str, figure: str) -> Iterable[float]:
    for ours in result.of(scenario, OURS.name):
        theirs = [
            run.outcome.figures[figure]
            for run in result.runs
            if (run.scenario, run.number) == (scenario, ours.number)
            and CONTENDERS[run.contender].is_reference
            and figure in run.outcome.figures
        ]
        if theirs and figure in ours.outcome.figures and min(theirs) > SMALLEST:
            yield round(ours.outcome.figures[figure] / min(theirs), 4)


class Verdict(msgspec.Struct, frozen=True):
    measure: str
    value: float
    at_most: float
    goal: Goal

    @property
    def is_met(self) -> bool:
        return self.value <= self.at_most


def verdicts(result: Result) -> list[Verdict]:
    """Each goal of which there are figures."""
    by_measure = {ratio.measure: ratio for ratio in ratios(result)}
    found = []
    for measure, goal in GOALS.items():
        scenario, _, figure = measure.partition("/")
        value = result.figure(scenario, OURS.name, figure)
        if value is None or (not goal.absolute and measure not in by_measure):
            continue
        if goal.absolute:
            found.append(Verdict(measure, value, goal.at_most, goal))
            continue
        ratio, at_most = by_measure[measure].median, goal.at_most
        creators = [result.figure(scenario, name, "creators") for name in result.contenders]
        needed = min((seconds for seconds in creators if seconds is not None), default=None)
        if goal.or_creators is not None and needed is not None:  # in the ratio's own terms
            at_most = max(at_most, goal.or_creators * needed / (value / ratio))
        found.append(Verdict(measure, ratio, at_most, goal))
    return found


def write(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def read(path: Path) -> Result:
    return msgspec.json.decode(path.read_bytes(), type=Result)


def _revision() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, check=False)
    return done.stdout.decode().strip() or "unknown"
