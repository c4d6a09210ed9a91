"""JobSets side by side: ours on our server, JobSet's own controller on the real one, through the same events.

After each step both show the same Jobs, labels, counts, conditions, reasons and messages. `TRAINWRIGHT_LIVES` sets how
many JobSets live.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobsetadmission.local import served
from kube.conftest import BuiltPrograms
from kube.jobsetlives import STEPS, Lives
from trainwright.client import Client
from trainwright.client.kubeconfig import load
from trainwright.controlloop import Manager
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.embedded.workloads.features import DEFAULTS
from trainwright.testing.controlplane import CLEANERS, RealControlPlane
from trainwright.testing.rest import Rest

COUNT = int(os.environ.get("TRAINWRIGHT_LIVES", "10"))

pytestmark = pytest.mark.timeout(1500)


@contextmanager
def controlled(kubeconfig: Path) -> Iterator[None]:
    """Our JobSet controller at work on a server."""
    state: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        state.append((asyncio.get_running_loop(), task))
        async with Client.to(load(kubeconfig)) as client:
            await Manager(client, workload_controllers(client, only=["jobset"])).run()

    def run() -> None:
        try:
            asyncio.run(work())
        except asyncio.CancelledError:
            pass

    thread = threading.Thread(target=run, name="jobset controller")
    thread.start()
    try:
        yield
    finally:
        loop, task = state[0]
        loop.call_soon_threadsafe(task.cancel)
        thread.join(30)


def test_jobsets_live_as_under_jobset_itself(programs: BuiltPrograms, tmp_path: Path) -> None:
    parts = ("kube-controller-manager", "jobset")
    real = RealControlPlane(
        programs, tmp_path / "real", with_parts=parts, controllers=CLEANERS, without_admission=("ServiceAccount",)
    )
    state = tmp_path / "state"
    with served(state, DEFAULTS), controlled(state / "kubeconfig"), real as plane:
        both = {
            "ours": Lives(Rest.from_kubeconfig(state / "kubeconfig", tmp_path / "scratch"), COUNT),
            "theirs": Lives(plane.admin, COUNT),
        }
        for lives in both.values():
            lives.begin()
        for step in range(STEPS + 1):
            seen = {name: lives.settled() for name, lives in both.items()}
            differ = {
                seed: (seen["ours"][seed], seen["theirs"][seed])
                for seed in range(COUNT)
                if seen["ours"][seed] != seen["theirs"][seed]
            }
            assert differ == {}, f"after step {step}"
            for lives in both.values():
                lives.step(step)
