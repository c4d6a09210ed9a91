"""The known window excuses what docs/operator.md says that it may, and nothing wider.

The operator dies within the second in which it has created a workload and not yet recorded its uid, and the workload
ends and is removed before the next operator sees the cluster as it is: only then may a job train a second time.
"""

from __future__ import annotations

from typing import Any

import pytest

from faults.bugs import reintroduced
from trainwright.testing.plans import rules
from trainwright.testing.plans.plan import parse
from trainwright.testing.plans.verdict import verdict
from trainwright.testing.plans.window import Death, losses
from trainwright.testing.watchlog import Change

IN_WINDOW = ("W15 0 stale:30/6@2", "W15 0 stale:30/6@3", "W15 0 stale:30/3@3")


@pytest.mark.parametrize("line", IN_WINDOW)
async def test_the_plans_of_the_window_hold_and_are_counted(line: str) -> None:
    assert await verdict(parse(line)) == ([], 1)


@pytest.mark.parametrize(
    "line", ["W15 0 stale:30/6@4", "W15 0 stale:30/6@5", "W15 0 crash-after@3", "W1 0 stale:30/6@3"]
)
async def test_plans_beside_the_window_are_judged_as_all_others(line: str) -> None:
    """Once the status is stored, once the successor sees the workload, or when nobody removes it."""
    assert await verdict(parse(line)) == ([], 0)


@pytest.mark.parametrize("line", ["W15 0 hide:jobsets/15@4", "W15 0 stale:30/6@4"])
async def test_a_job_that_trains_again_although_its_workload_was_recorded_is_caught(line: str) -> None:
    with reintroduced("SEC1"):
        found = await verdict(parse(line))
    assert any("I12" in text for text in found.wrong)
    assert found.in_window == 0


@pytest.mark.parametrize("line", ["W15 0 stale:30/6@4", "W15 0 stale:30/6@5"])
async def test_an_operator_that_never_records_the_workload_is_caught(line: str) -> None:
    with reintroduced("uid-forgotten"):
        found = await verdict(parse(line))
    assert any("I12" in text for text in found.wrong)
    assert found.in_window == 0


# The rule by itself: one workload that is lost at 5 s, while its operator is gone from 0.5 s to 10 s


def change(type: str, uid: str, at: float, *, job: str = "job", kind: str = "JobSet", **status: Any) -> Change:
    owner = {"kind": "TrainJob", "name": "job", "uid": job, "controller": True}
    metadata = {"name": "job", "namespace": "ns", "uid": uid, "ownerReferences": [owner]}
    body = {"metadata": metadata, "spec": {"replicatedJobs": []}, "status": status}
    return Change(type, kind, int(at * 10), body, at)


COMPLETED: dict[str, Any] = {"conditions": [{"type": "Completed", "status": "True"}]}
LOST = [change("ADDED", "first", 0.1), change("DELETED", "first", 5.0, **COMPLETED)]
REBUILT = change("ADDED", "second", 10.5)
DEATH = Death(0.5, 10.0)


def test_what_is_in_the_window_is_excused_once() -> None:
    story = [*LOST, REBUILT]
    [loss] = losses(story, [DEATH])
    assert (loss.lost.uid, loss.rebuilt.uid) == ("first", "second")
    assert list(rules.violations(story, [loss])) == []
    again = [*story, change("DELETED", "second", 12.0, **COMPLETED), change("ADDED", "third", 13.0)]
    assert len(list(rules.violations(again, losses(again, [DEATH])))) == 1


@pytest.mark.parametrize(
    ("why", "story", "death"),
    [
        ("nobody died", [*LOST, REBUILT], None),
        ("it died before the create", [*LOST, REBUILT], Death(0.05, 10.0)),
        ("it died a second after the create", [*LOST, REBUILT], Death(1.1, 10.0)),
        ("it saw the workload go", [*LOST, REBUILT], Death(0.5, 4.9)),
        ("it died after the workload had gone", [*LOST, REBUILT], Death(5.1, 10.0)),
        ("it was made while nobody could see", [*LOST, change("ADDED", "second", 8.0)], DEATH),
        ("it is another job's", [*LOST, change("ADDED", "second", 10.5, job="other")], DEATH),
        ("the workload is still there", [LOST[0], REBUILT], DEATH),
        (
            "it was recorded",
            [*LOST, REBUILT, change("MODIFIED", "job", 0.4, kind="TrainJob", workloadUID="first")],
            DEATH,
        ),
    ],
)
def test_what_is_beside_the_window_is_not_excused(why: str, story: list[Change], death: Death | None) -> None:
    assert list(losses(story, [death] if death else [])) == [], why
