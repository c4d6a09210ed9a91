"""Runs that lost their follower, because its terminal was closed or its command killed: the next command says so once.

In: the marks that a `run` leaves in its run's directory when it vanishes. Out: a sentence for each, on standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.runs import Record


def say_what_was_left(state: Path, flag: str) -> None:
    """Says it on standard error, so that it is not in the way of a command's own output."""
    if not any(state.glob("runs/*/following")):  # before anything is imported: every command comes by here
        return
    from trainwright.runs import RunsHome

    home = RunsHome(state)
    for run in home.abandoned():
        print(_sentence(run, flag), file=sys.stderr)
        home.acknowledge(run.id)


def _sentence(run: Record, flag: str) -> str:
    if run.is_finished:
        return f"TrainJob {run.name}, which nobody followed any more, has ended meanwhile: {run.state}"
    return (
        f"TrainJob {run.name} was left running when its terminal was closed or its command killed. "
        f"Follow it with: trainwright logs -f {run.name}{flag}, delete it with: trainwright delete {run.name}{flag}"
    )
