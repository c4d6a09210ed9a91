"""The engine finds the bugs that others had, and ours: each is put back, and a plan catches it.

U9 and U10 leave no trace in the end state; their tests are `test_two_operators_that_start_on_an_empty_secret…` in
tests/unit/operator/certificates/test_rotation.py and `test_the_order…` in tests/unit/plugins/test_registry.py.
"""

from __future__ import annotations

import pytest

from faults.bugs import BUGS, reintroduced
from trainwright.testing.plans.plan import parse
from trainwright.testing.plans.verdict import judge

CAUGHT_BY = {
    "U1": "W6 0 refused:500@7",
    "U2": "W5 0 lag:1",
    "U3": "W13 0 lag:1",
    "U4": "W14 0 lag:1",
    "U5": "W7 0 lag:1",
    "U6": "W7 0 lag:1",
    "U7": "W7 0 lag:1",
    "U8": "W2 0 lag:1",
    "U11": "W13 0 lag:1",
    "U12": "W1 0 lag:1",
    "U13": "W1 0 refused:409@4",
    "SEC1": "W15 0 hide:jobsets/15@4",
    "uid-forgotten": "W15 0 stale:30/6@4",
    "ended-is-deleted": "W1 0 stale:15/6@8",
    "lost-too-soon": "W1 0 stale:30/6@5",
    "own-clock": "W6 0 skew:-600",
}


async def caught(line: str) -> list[str]:
    try:
        return await judge(parse(line))
    except AssertionError as error:  # even the undisturbed run shows it
        return [str(error)]


@pytest.mark.parametrize("bug", BUGS)
async def test_a_plan_catches_the_bug_and_nothing_without_it(bug: str) -> None:
    line = CAUGHT_BY[bug]
    with reintroduced(bug):
        assert await caught(line), f"{line} does not find {bug}"
    assert await caught(line) == []
