"""The one window in which a job may train twice (docs/operator.md, "A job trains once"), as a rule that can be counted.

In: all changes of a run, and when operators died. Out: each workload that was lost in the window, with the one that was
made in its place. All of this must hold for it, or it is a fault like any other:

- there is no other operator than the one that died;
- it died after it had created the workload, and less than a second later: by then its status is written;
- no status of the TrainJob with that workload's uid was ever stored;
- the workload was gone before the successor could see the cluster as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainwright.operator.trainjobs.statuses import MERGE_SECONDS
from trainwright.testing import oracle
from trainwright.testing.watchlog import Change, histories


@dataclass(frozen=True)
class Death:
    """Of an operator: when, and when its successor's view was true. Wall times of the stage."""

    at: float
    sees_again: float


@dataclass(frozen=True)
class Loss:
    """A workload that was lost in the window, and the one that was made in its place."""

    lost: Change
    rebuilt: Change


def losses(changes: list[Change], deaths: Iterable[Death]) -> Iterator[Loss]:
    """`deaths` are those of the only operator; with two, there is no such window."""
    deaths = list(deaths)
    jobs = [change for change in changes if change.kind == "TrainJob"]
    lives = list(histories(change for change in changes if change.kind == "JobSet"))
    for life in lives:
        born, gone = life[0], life[-1]
        death = next((death for death in deaths if _is_in_window(born, gone, death)), None)
        if death is None or _is_recorded(born, jobs):
            continue
        rebuilt = next((other[0] for other in lives if _is_in_place_of(other[0], gone, death)), None)
        if rebuilt is not None:
            yield Loss(gone, rebuilt)


def _is_in_window(born: Change, gone: Change, death: Death) -> bool:
    if born.type != "ADDED" or gone.type != "DELETED":
        return False
    return 0 <= death.at - born.at < MERGE_SECONDS and death.at < gone.at <= death.sees_again


def _is_recorded(workload: Change, jobs: list[Change]) -> bool:
    return any((job.object.get("status") or {}).get("workloadUID") == workload.uid for job in jobs)


def _is_in_place_of(born: Change, gone: Change, death: Death) -> bool:
    """The next one of the same TrainJob, made once the successor saw; not one that somebody made while it was blind."""
    owner, other = oracle.owning_trainjob(born.object), oracle.owning_trainjob(gone.object)
    if owner is None or other is None or owner["uid"] != other["uid"]:
        return False
    return born.version > gone.version and born.at >= death.sees_again
