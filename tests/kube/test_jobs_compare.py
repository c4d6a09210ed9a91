"""Jobs side by side: ours on our server, kube-controller-manager on the real one, through the same events.

After each step both show the same pods, labels, finalizers, counts, conditions, reasons, messages and events.
`TRAINWRIGHT_JOBS` sets how many seeded Jobs live (or which: `7,106`), `TRAINWRIGHT_MORE_JOBS` how many batches
hypothesis makes besides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kube.conftest import BuiltPrograms
from kube.joblives import STEPS, Lives, life
from kube.sidebyside import Both, differences, settled, side_by_side

ASKED = os.environ.get("TRAINWRIGHT_JOBS", "14")
SEEDS = list(map(int, ASKED.split(","))) if "," in ASKED else list(range(int(ASKED)))
BATCHES = int(os.environ.get("TRAINWRIGHT_MORE_JOBS", "1"))
BATCH = 7
MANY = 50
REASONS = {
    "BackoffLimitExceeded",
    "CompletionsReached",
    "DeadlineExceeded",
    "FailedIndexes",
    "JobResumed",
    "JobSuspended",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
    "SuccessPolicy",
}
"""What many Jobs must have met between them, or they were too dull to compare."""
CONTROLLERS = ("job-controller", "ttl-after-finished-controller")

pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def both(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with side_by_side(programs, tmp_path_factory.mktemp("jobs"), ("job",), CONTROLLERS) as servers:
        yield servers


def live(both: Both, seeds: list[int]) -> set[str]:
    """Lets Jobs live under both. Out: the reasons of all conditions that were seen."""
    reasons: set[str] = set()
    ours, theirs = (Lives(rest, seeds) for rest in both)
    for lives in (ours, theirs):
        lives.begin()
    for step in range(STEPS + 1):
        mine, real = settled(ours, theirs)
        told = {seed: (life(seed)["spec"], each) for seed, each in differences(mine, real).items()}
        assert told == {}, f"after step {step}"
        reasons |= {condition[2] for state in real.values() if state["job"] for condition in state["job"]["conditions"]}
        if step < STEPS:
            for lives in (ours, theirs):
                lives.step(step, real)
    return reasons


def test_jobs_live_as_under_kube_controller_manager(both: Both) -> None:
    reasons = live(both, SEEDS)
    assert len(SEEDS) < MANY or reasons >= REASONS, REASONS - reasons


@settings(
    max_examples=BATCHES,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # a batch takes a minute: too long for making it smaller
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(st.lists(st.integers(1000, 2**31), min_size=BATCH, max_size=BATCH, unique=True))
def test_so_do_jobs_that_nobody_thought_of(both: Both, seeds: list[int]) -> None:
    live(both, seeds)
