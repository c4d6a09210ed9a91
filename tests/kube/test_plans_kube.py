"""A sample of the fault plans on a real control plane: the same faults, the same verdict.

The whole set runs in virtual time (`make test-faults`); here a few of its faults, drawn by a seed, hit the operator on
kube-apiserver. `TRAINWRIGHT_KUBE_PLANS` says how many.
"""

from __future__ import annotations

import os
import random

import pytest

from kube.stories import STORIES
from kube.test_crashes import difference, play
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.faults import Crash, Delay, Double, DropAfter, DropBefore, Fault, Respond, Rule
from trainwright.testing.plans.stage import is_counted

COUNT = int(os.environ.get("TRAINWRIGHT_KUBE_PLANS", "6"))
SEED = 1
FAULTS: dict[str, tuple[Fault, int]] = {
    "lost": (DropBefore(), 1),
    "unheard": (DropAfter(), 1),
    "doubled": (Double(), 1),
    "late:3": (Delay(3.0), 1),
    "crash-before": (Crash(after=False), 1),
    **{f"refused:{code}": (Respond(code), 1) for code in (409, 429, 500, 503, 504)},
    "refused:503x6": (Respond(503), 6),
}


def drawn() -> list[tuple[int, str, int]]:
    """Which story, which fault, at which write."""
    draw = random.Random(SEED)
    return [(draw.randrange(len(STORIES)), draw.choice(sorted(FAULTS)), draw.randint(1, 5)) for _ in range(COUNT)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("story", "name", "at"), drawn())
def test_a_job_ends_alike_on_a_real_server_whatever_happens_to_a_write(
    plane: RealControlPlane, story: int, name: str, at: int
) -> None:
    fault, times = FAULTS[name]
    undisturbed = play(plane, STORIES[story])
    rule = Rule(fault, nth=at, times=times, when=is_counted)
    disturbed = play(plane, STORIES[story], rule=rule)
    assert rule.seen >= at, "the fault never hit"
    assert not difference(undisturbed.state, disturbed.state)
    assert disturbed.counts == undisturbed.counts
