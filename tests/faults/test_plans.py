"""The operator comes to the same end, whatever happens to its requests, its view, its clock and itself.

A thirtieth of the plans by default, a tenth in `.ci/run`; `make test-faults` runs all of them. A plan that fails is
replayed alone by
`python -m trainwright.testing.plans 'LINE'`.
"""

from __future__ import annotations

import asyncio
import gc
import os

import pytest

from trainwright.testing.plans.generator import plans_of
from trainwright.testing.plans.plan import Fault, Plan, parse
from trainwright.testing.plans.verdict import judge, undisturbed, verdict
from trainwright.testing.plans.workloads import WORKLOADS

SHARE = int(os.environ.get("TRAINWRIGHT_PLANS_SHARE", "30"))
SEED = int(os.environ.get("TRAINWRIGHT_PLANS_SEED", "0"))
WIDE = "TRAINWRIGHT_PLANS_WIDE" in os.environ


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_ends_alike_whatever_happens(workload: str) -> None:
    plans = asyncio.run(plans_of(workload, SEED, wide=WIDE))
    offset = list(WORKLOADS).index(workload) % SHARE
    wrong, in_window = {}, []
    for number, plan in enumerate(plans[offset::SHARE]):
        if number % 25 == 0:
            gc.collect()
        found = asyncio.run(verdict(plan))  # a loop of its own: nothing of the last run is left in it
        if found.wrong:
            wrong[str(plan)] = found.wrong
        in_window += [str(plan)] * bool(found.in_window)
    played = f"{len(plans[offset::SHARE])} of {len(plans)} plans"
    print(f"{workload}: {played}, {len(wrong)} failing, in the known window: {in_window or 0}")
    assert not wrong, "\n".join(f"{plan}\n  " + "\n  ".join(found) for plan, found in wrong.items())


FOUND = {
    "a stale view of a workload that has ended": "W1 0 stale:15/6@8",
    "a workload that the watch does not show yet": "W1 0 stale:30/6@5",
    "what an old leader sends late": "W3 0 frozen:60@6",
    "a workload that ended before its job's status knew of it": "W15 0 refused:503x12@4",
    "the last counts of a job that ran into its deadline": "W6 0 stale:30/3@8",
    "a wait of which rounding leaves a trace": "W2 0 stale:30/3@15",
    "a child of a job that is gone": "W2 0 stale:5/6@7",
    "a refusal that passes while a job is suspended": "W3 0 refused:429@12",
    "a wall clock that is set between two answers": "W7 0 jump:3600@6",
}


@pytest.mark.parametrize("what", FOUND)
async def test_what_plans_have_found_stays_mended(what: str) -> None:
    assert await judge(parse(FOUND[what])) == []


@pytest.mark.parametrize(
    "line",
    ["W1 0", "W14 7 refused:503x12@3 two", "W2 1 stale:20/4@3 jump:-3600@2 rate:1.5", "W3 0 hide:jobsets/15@3 cut@9"],
)
def test_a_plan_is_one_line(line: str) -> None:
    assert str(parse(line)) == line


@pytest.mark.parametrize("line", ["", "W1", "W1 x", "W1 0 explode@3", "W1 0 lost@"])
def test_what_is_no_plan_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse(line)


async def test_the_same_plan_makes_the_same_requests() -> None:
    from trainwright.testing.plans.play import play

    plan = Plan("W3", 5, (Fault("refused", "503", 12, 4), Fault("crash-after", at=6)))
    first, second = await play(plan), await play(plan)
    assert first.writes == second.writes
    assert first.hits == second.hits > 1
    assert (await undisturbed(plan)).writes != first.writes
