"""Lives on our server and on the real one, looked at until both have come to rest."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from jobsetadmission.local import served
from kube.conftest import BuiltPrograms
from trainwright.embedded.workloads.features import DEFAULTS
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import CLEANERS, RealControlPlane
from trainwright.testing.processes import Process
from trainwright.testing.rest import Rest

Both = tuple[Rest, Rest]
"""Our server, and the real one."""

STILL_SECONDS = 3.0  # kube-controller-manager waits for a second before it looks at a Job again
LONGEST_SECONDS = 60.0


@contextmanager
def side_by_side(
    programs: BuiltPrograms, directory: Path, ours: tuple[str, ...], theirs: tuple[str, ...]
) -> Iterator[Both]:
    """Our server with our controllers as a program of its own, and the real ones, by their names."""
    real = RealControlPlane(
        programs,
        directory / "real",
        with_parts=("kube-controller-manager", *(["jobset"] if "jobset" in ours else [])),
        controllers=(*CLEANERS, *theirs),
        without_admission=("ServiceAccount",),
        with_audit_log=False,
    )
    kubeconfig = directory / "state" / "kubeconfig"
    with served(directory / "state", DEFAULTS), real as plane:
        arguments = ["-m", "trainwright.embedded.workloads", "--kubeconfig", str(kubeconfig)]
        only = [word for name in ours for word in ("--only", name)]
        controllers = Process("controllers", [sys.executable, *arguments, *only], directory / "controllers.log")
        controllers.start()
        try:
            controllers.wait_until(lambda: "ready" in controllers.log.read_text(), 30)
            yield Rest.from_kubeconfig(kubeconfig, directory / "scratch"), plane.admin
            log = controllers.log.read_text()
            assert controllers.is_alive(), controllers.tail()
            assert "Traceback" not in log, log[-5000:]
        finally:
            controllers.stop()


class Lives(Protocol):
    def states(self) -> dict[int, Json]:
        """What users see of each life, by its seed."""


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


def differences(ours: dict[int, Json], theirs: dict[int, Json]) -> dict[int, dict[str, tuple[object, object]]]:
    """By seed and part: (ours, theirs)."""
    return {
        seed: {part: (mine[part], theirs[seed][part]) for part in mine if mine[part] != theirs[seed][part]}
        for seed, mine in ours.items()
        if mine != theirs[seed]
    }
