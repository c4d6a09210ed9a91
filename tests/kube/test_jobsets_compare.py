"""JobSets side by side: ours on our server, JobSet's own controller on the real one, through the same events.

After each step both show the same Jobs, labels, counts, conditions, reasons, messages and events. Half of the tests
have no Job controller and write what one would write; the others let Jobs make pods, and things happen to those.
`TRAINWRIGHT_LIVES` sets how many seeded JobSets live each time (or which: `7,106`), `TRAINWRIGHT_MORE_LIVES` how many
batches hypothesis makes besides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kube.conftest import BuiltPrograms
from kube.jobsetlives import POD_STEPS, STEPS, Lives, PodLives
from kube.sidebyside import Both, differences, settled, side_by_side

ASKED = os.environ.get("TRAINWRIGHT_LIVES", "12")
SEEDS = list(map(int, ASKED.split(","))) if "," in ASKED else list(range(int(ASKED)))
BATCHES = int(os.environ.get("TRAINWRIGHT_MORE_LIVES", "0"))
BATCH = 7
MANY = 100
REASONS = {"AllJobsCompleted", "FailedJobs", "ReachedMaxRestarts", "ResumeJobs", "SuspendedJobs"}
"""What many JobSets must have met between them, or they were too dull to compare."""

pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def alone(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """JobSet controllers, and nobody who works on Jobs."""
    with side_by_side(programs, tmp_path_factory.mktemp("jobsets"), ("jobset",), ()) as both:
        yield both


@pytest.fixture(scope="module")
def with_jobs(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """JobSet and Job controllers."""
    directory = tmp_path_factory.mktemp("with-jobs")
    with side_by_side(programs, directory, ("jobset", "job"), ("job-controller",)) as both:
        yield both


def live(ours: Lives, theirs: Lives, steps: int) -> set[str]:
    """Lets JobSets live under both. Out: the reasons of all conditions that were seen."""
    reasons: set[str] = set()
    for lives in (ours, theirs):
        lives.begin()
    for step in range(steps + 1):
        mine, real = settled(ours, theirs)
        assert differences(mine, real) == {}, f"after step {step}"
        reasons |= {condition[2] for state in real.values() for condition in state["conditions"]}
        for lives in (ours, theirs):
            lives.step(step)
    return reasons


def test_jobsets_live_as_under_jobset_itself(alone: Both) -> None:
    ours, theirs = (Lives(rest, SEEDS) for rest in alone)
    reasons = live(ours, theirs, STEPS)
    assert len(SEEDS) < MANY or reasons >= REASONS, REASONS - reasons


def test_so_they_do_when_things_happen_to_their_pods(with_jobs: Both) -> None:
    ours, theirs = (PodLives(rest, SEEDS) for rest in with_jobs)
    reasons = live(ours, theirs, POD_STEPS)
    assert len(SEEDS) < MANY or reasons >= REASONS, REASONS - reasons


needs_time = pytest.mark.skipif(BATCHES == 0, reason="with TRAINWRIGHT_MORE_LIVES: make test-workloads")
SOME = st.lists(st.integers(1000, 2**31), min_size=BATCH, max_size=BATCH, unique=True)
unhurried = settings(
    max_examples=max(BATCHES, 1),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # a batch takes a minute: too long for making it smaller
    suppress_health_check=list(HealthCheck),
    database=None,
)


@needs_time
@unhurried
@given(SOME)
def test_so_do_jobsets_that_nobody_thought_of(alone: Both, seeds: list[int]) -> None:
    ours, theirs = (Lives(rest, seeds) for rest in alone)
    live(ours, theirs, STEPS)


@needs_time
@unhurried
@given(SOME)
def test_and_their_pods(with_jobs: Both, seeds: list[int]) -> None:
    ours, theirs = (PodLives(rest, seeds) for rest in with_jobs)
    live(ours, theirs, POD_STEPS)
