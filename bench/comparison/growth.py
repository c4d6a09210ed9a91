"""What each further TrainJob costs, and what objects cost that are none of the operator's business.

growth     suspended TrainJobs in steps up to 10,000 on one stage: CPU and memory for each; then a restart with all
foreign    700 ConfigMaps of 200 KB that belong to nobody: what the operator's memory grows by
"""

from __future__ import annotations

from pathlib import Path

from comparison import vitals
from comparison.contenders import Contender
from comparison.orders import Burst, ConfigMaps
from comparison.scenarios import Outcome
from comparison.stage import Stage

STEPS = (100, 300, 1_000, 3_000, 10_000)
AT_ONCE = 1_000  # a watch of the load generator does not last for ever
FOREIGN_COUNT, FOREIGN_SIZE = 700, 200_000


def grow(contender: Contender, directory: Path, *, most: int = STEPS[-1]) -> Outcome:
    """`N/cpu_ms` and `N/rss_kb` are for each of the first N jobs, over what the operator took with none."""
    steps = [step for step in STEPS if step <= most] or [most]
    outcome = Outcome()
    with Stage(contender, directory) as stage:
        cpu, rest = vitals.cpu_seconds(stage.pid), vitals.memory(stage.pid).now
        outcome.figures["rss_rest"] = rest
        present = 0
        for step in steps:
            for first in range(present, step, AT_ONCE):
                stage.load(Burst(**stage.where, first=first, count=min(AT_ONCE, step - first), suspend=True))
            stage.wait_until_quiet()
            present = step
            outcome.figures[f"{step}/cpu_ms"] = (vitals.cpu_seconds(stage.pid) - cpu) / step * 1000
            outcome.figures[f"{step}/rss_kb"] = (vitals.memory(stage.pid).now - rest) * 1024 / step
            outcome.figures[f"{step}/rss"] = vitals.memory(stage.pid).now
        seconds, _ = stage.restart()
        stage.wait_until_quiet()
        outcome.figures["restart_seconds"] = seconds
        outcome.figures["restart_cpu"] = vitals.cpu_seconds(stage.pid)
        outcome.figures["restart_rss"] = vitals.memory(stage.pid).now
        outcome.figures["restart_peak"] = vitals.memory(stage.pid).peak
    last, figures = steps[-1], outcome.figures
    for figure in ("cpu_ms", "rss_kb"):
        if last // 10 in steps:
            figures[f"flat_{figure}"] = figures[f"{last}/{figure}"] / figures[f"{last // 10}/{figure}"]
    return outcome


def foreign(contender: Contender, directory: Path) -> Outcome:
    """MB that the foreign ConfigMaps add to a running operator, and to one that starts with them there."""
    with Stage(contender, directory) as stage:
        stage.load(Burst(**stage.where, count=1))  # what a first job loads is not the strangers' doing
        stage.wait_until_quiet()
        before = vitals.memory(stage.pid).now
        stage.load(ConfigMaps(**stage.where, count=FOREIGN_COUNT, size=FOREIGN_SIZE))
        stage.wait_until_quiet()
        running = vitals.memory(stage.pid)
        stage.restart()
        stage.wait_until_quiet()
        started = vitals.memory(stage.pid)
        return Outcome(
            figures={
                "foreign_mb": running.now - before,
                "foreign_restart_mb": started.now - before,
                "rss_rest": before,
            }
        )
