"""Jobs side by side: ours on our server, kube-controller-manager on the real one, through the same events.

After each step both show the same pods, labels, finalizers, counts, conditions, reasons, messages and events.
`TRAINWRIGHT_JOBS` sets how many seeded Jobs live (or which: `7,106`), `TRAINWRIGHT_MORE_JOBS` how many batches
hypothesis makes besides.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobsetadmission.local import served
from kube.conftest import BuiltPrograms
from kube.joblives import STEPS, Lives, life
from trainwright.embedded.workloads.features import DEFAULTS
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import CLEANERS, RealControlPlane
from trainwright.testing.processes import Process
from trainwright.testing.rest import Rest

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
CONTROLLERS = (*CLEANERS, "job-controller", "ttl-after-finished-controller")
STILL_SECONDS = 3.0  # kube-controller-manager waits for a second before it looks at a Job again
LONGEST_SECONDS = 60.0

pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def both(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rest, Rest]]:
    """Our server with our Job controller as a program of its own, and the real ones."""
    directory = tmp_path_factory.mktemp("jobs")
    real = RealControlPlane(
        programs,
        directory / "real",
        with_parts=("kube-controller-manager",),
        controllers=CONTROLLERS,
        without_admission=("ServiceAccount",),
        with_audit_log=False,
    )
    kubeconfig = directory / "state" / "kubeconfig"
    with served(directory / "state", DEFAULTS), real as plane:
        arguments = ["-m", "trainwright.embedded.workloads", "--kubeconfig", str(kubeconfig), "--only", "job"]
        ours = Process("job controller", [sys.executable, *arguments], directory / "job.log")
        ours.start()
        try:
            ours.wait_until(lambda: "ready" in ours.log.read_text(), 30)
            yield Rest.from_kubeconfig(kubeconfig, directory / "scratch"), plane.admin
            log = ours.log.read_text()
            assert ours.is_alive(), ours.tail()
            assert "Traceback" not in log, log[-5000:]
        finally:
            ours.stop()


def settled(ours: Lives, theirs: Lives) -> tuple[dict[int, Json], dict[int, Json]]:
    """Both states, once they have been the same for a while, or after the longest time."""
    began = time.monotonic()
    since, last = began, None
    while True:
        seen = ours.states(), theirs.states()
        now = time.monotonic()
        if seen != last or seen[0] != seen[1]:
            since, last = now, seen
        if now - since >= STILL_SECONDS or now - began >= LONGEST_SECONDS:
            return seen
        time.sleep(0.25)


def difference(ours: Json, theirs: Json) -> dict[str, tuple[object, object]]:
    return {part: (ours[part], theirs[part]) for part in ours if ours[part] != theirs[part]}


def live(both: tuple[Rest, Rest], seeds: list[int]) -> set[str]:
    """Lets Jobs live under both. Out: the reasons of all conditions that were seen."""
    reasons: set[str] = set()
    ours, theirs = (Lives(rest, seeds) for rest in both)
    for lives in (ours, theirs):
        lives.begin()
    for step in range(STEPS + 1):
        mine, real = settled(ours, theirs)
        differ = {seed: difference(mine[seed], real[seed]) for seed in seeds if mine[seed] != real[seed]}
        told = {seed: (life(seed)["spec"], each) for seed, each in differ.items()}
        assert told == {}, f"after step {step}"
        reasons |= {condition[2] for state in real.values() if state["job"] for condition in state["job"]["conditions"]}
        if step < STEPS:
            for lives in (ours, theirs):
                lives.step(step, real)
    return reasons


def test_jobs_live_as_under_kube_controller_manager(both: tuple[Rest, Rest]) -> None:
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
def test_so_do_jobs_that_nobody_thought_of(both: tuple[Rest, Rest], seeds: list[int]) -> None:
    live(both, seeds)
