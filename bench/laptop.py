"""How long one waits on a laptop: for the first line of a plain job on two ranks, and for the command itself.

    python bench/laptop.py [--runs 5]        figures, and build/bench/laptop.json
    python bench/laptop.py --check           fails when a ratio is worse than bench/limits.toml
    python bench/laptop.py --set-limits FILE.json

A ratio is over the time that the bare interpreter takes to start and end in the same run: what remains is ours, on any
machine. Each run measures everything once, in turn.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from comparison import limits, results
from comparison.programs import ROOT, compile_ours
from comparison.results import Ratio, Result, Run
from comparison.scenarios import Outcome

COMMAND = Path(sys.executable).parent / "trainwright"
FORM = "laptop"
STARTS = 10  # of an interpreter, for one figure: each takes so little that its neighbours on the machine show
LINE = "first line"

JOB = f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: first-line}}
spec:
  runtimeRef: {{name: plain}}
  trainer: {{numNodes: 2, command: [echo, {LINE}]}}
"""

BARE, COMMAND_TIME = "bare", "command"
FRESH, NOTHING_RUNS, CLUSTER_IS_UP = "fresh", "nothing-runs", "cluster-is-up"
TITLES = {
    BARE: "the interpreter by itself",
    COMMAND_TIME: "trainwright --version",
    FRESH: "run to its first line, in a directory that is new",
    NOTHING_RUNS: "run to its first line, nothing running before",
    CLUSTER_IS_UP: "run to its first line, cluster up",
}
GOALS = {NOTHING_RUNS: 1.0, CLUSTER_IS_UP: 0.3}  # in seconds


def measure(scratch: Path) -> dict[str, float]:
    """Everything once; seconds."""
    file = scratch / "trainjob.yaml"
    file.write_text(JOB)
    directory = scratch / "state"
    figures = {
        BARE: seconds_of([sys.executable, "-c", "pass"]),
        COMMAND_TIME: seconds_of([COMMAND, "--version"]),
        FRESH: first_line(file, directory),
        NOTHING_RUNS: first_line(file, directory),
    }
    subprocess.run([COMMAND, "up", "--detach", "--dir", directory], check=True, capture_output=True)
    try:
        figures[CLUSTER_IS_UP] = first_line(file, directory)
    finally:
        subprocess.run([COMMAND, "down", "--force", "--dir", directory], check=True, capture_output=True)
    return figures


def seconds_of(command: Sequence[str | Path]) -> float:
    """From start to end, the median of a few."""
    times = []
    for _ in range(STARTS):
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.monotonic() - began)
    return median(times)


def first_line(file: Path, directory: Path) -> float:
    """Seconds from the call of `trainwright run` until a rank's line is on its standard output."""
    began = time.monotonic()
    command: list[str | Path] = [COMMAND, "run", file, "--dir", directory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        seen, lines = 0.0, []
        for line in running.stdout:
            lines.append(line)
            if not seen and line.startswith("[rank ") and LINE in line:
                seen = time.monotonic() - began
    if running.returncode != 0 or not seen:
        raise RuntimeError(f"{shlex.join(map(str, command))} ended with {running.returncode}:\n{''.join(lines)}")
    return seen


def ratios(result: Result) -> list[Ratio]:
    """Each figure over the bare interpreter's of the same run."""
    runs = [run.outcome.figures for run in result.runs]
    names = [name for name in TITLES if name != BARE]
    return [Ratio(f"{FORM}/{name}", [round(run[name] / run[BARE], 3) for run in runs]) for name in names]


def show(result: Result) -> None:
    print(f"{'':<54}{'s, median':>10}{'ratio':>8}{'at most, s':>12}   (runs)   load {result.machine.load:.1f}")
    by_measure = {ratio.measure: ratio.median for ratio in ratios(result)}
    for name, title in TITLES.items():
        runs = [run.outcome.figures[name] for run in result.runs]
        ratio = f"{by_measure[f'{FORM}/{name}']:.1f}" if name != BARE else ""
        goal = f"{GOALS[name]:.1f} {'met' if median(runs) <= GOALS[name] else 'MISSED'}" if name in GOALS else ""
        every = ", ".join(f"{run:.3f}" for run in runs)
        print(f"{title:<54}{median(runs):>10.3f}{ratio:>8}{goal:>12}   ({every})")


def judge(result: Result) -> int:
    judged = limits.judge(ratios(result), limits.read(), FORM)
    for each in judged:
        values = f"{each.ratio.median:>10.2f}{each.limit.ratio:>8.2f}{each.change:>+12.0%}"
        print(f"{each.limit.measure:<54}{values}   {'WORSE' if each.is_worse else 'ok'}")
    return 1 if not judged or any(each.is_worse for each in judged) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="how often everything is measured (default: 5)")
    parser.add_argument("--result", type=Path, default=ROOT / "build" / "bench" / "laptop.json")
    parser.add_argument("--check", action="store_true", help="fail when a ratio is worse than its limit")
    parser.add_argument("--set-limits", type=Path, metavar="FILE", help="make a result's ratios the limits")
    arguments = parser.parse_args()
    if arguments.set_limits:
        known = limits.replaced(
            limits.read(), FORM, ratios(results.read(arguments.set_limits)), arguments.set_limits.name
        )
        limits.FILE.write_text(limits.text_of(known))
        return 0
    compile_ours()
    result = results.begin(f"python bench/laptop.py {shlex.join(sys.argv[1:])}".strip(), FORM)
    for number in range(1, arguments.runs + 1):
        with tempfile.TemporaryDirectory(prefix="laptop-") as scratch:
            began = time.monotonic()
            figures = measure(Path(scratch))
            took = round(time.monotonic() - began, 1)
            result.runs.append(Run(FORM, "ours", number, took, result.machine.load, Outcome(figures=figures)))
            results.write(result, arguments.result)
    show(result)
    return judge(result) if arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
