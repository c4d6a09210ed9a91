"""Thousands of TrainJobs (S1, S2, S3): created at 400 a second, at rest, and found again by a new operator.

Only with `TRAINWRIGHT_LOAD`, the number of jobs (`make test-load`: 10,000). CPU, memory and writes are judged always;
what the clock says only with `TRAINWRIGHT_LOAD_ALONE`, on a machine that nobody else uses.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kube.installation import USER
from kube.stories import TORCH, base, create, jobsets, runtime, trainjob
from kube.test_operator_faults import OperatorProcess
from kube.test_operator_idle import Unhurried, cpu_seconds, is_admitted
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane

JOBS = int(os.environ.get("TRAINWRIGHT_LOAD", "0"))
ALONE = "TRAINWRIGHT_LOAD_ALONE" in os.environ
A_SECOND = 400
CREATORS = 8
ALL_WITHIN = 180.0
CONVERGED_WITHIN = 3600.0
MOST_MEMORY = 400 * 2**20
MOST_CPU_OF_A_RESTART = 0.003  # for each job
REST_SECONDS = 60.0
MOST_CPU_AT_REST = 0.02

pytestmark = pytest.mark.skipif(not JOBS, reason="only with TRAINWRIGHT_LOAD (make test-load)")


def memory(pid: int) -> int:
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def count(plane: RealControlPlane, path: str) -> int:
    """How many objects there are, without reading them."""
    page = plane.admin.get(path, limit="1")
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def until_still(plane: RealControlPlane, namespace: str, seconds: float = 5.0) -> None:
    """Until nothing has been written for a while: the server's version stands still, but for leases."""
    end = time.monotonic() + CONVERGED_WITHIN
    while True:
        before = len(written(plane, time.time() - seconds))
        if not before:
            return
        assert time.monotonic() < end, "the operator does not come to rest"
        time.sleep(seconds)


def written(plane: RealControlPlane, since: float) -> list[str]:
    mine = requests(plane.audit_events(), user=USER)
    return [str(it) for it in mine if it.is_write and it.at > since and it.resource != "leases"]


@pytest.mark.timeout(7200)
def test_ten_thousand_jobs_are_made_rest_and_are_found_again(plane: RealControlPlane, tmp_path: Path) -> None:
    namespace = plane.namespace("load")
    installed = Unhurried(plane, overlay="manager")
    installed.install()
    operator = OperatorProcess(installed, "load", tmp_path)
    operator.process.start()
    try:
        operator.process.wait_until(lambda: is_admitted(plane, namespace), 120)
        create(plane.admin, namespace, runtime("it", TORCH))
        begun = time.monotonic()
        with ThreadPoolExecutor(CREATORS) as pool:
            list(pool.map(lambda number: create_in_time(plane, namespace, number, begun), range(JOBS)))
        created = time.monotonic() - begun
        end = time.monotonic() + CONVERGED_WITHIN
        while (made := count(plane, jobsets(namespace))) < JOBS:
            assert time.monotonic() < end, f"{made} of {JOBS} JobSets"
            time.sleep(1)
        all_made = time.monotonic() - begun
        until_still(plane, namespace)
        used, resident = cpu_seconds(operator.process.pid), memory(operator.process.pid)
        print(f"S1: {JOBS} jobs created in {created:.0f} s, all JobSets after {all_made:.0f} s; the operator used ")
        print(f"{1000 * used / JOBS:.1f} ms of CPU for each, and {resident / 2**20:.0f} MB")
        assert resident < MOST_MEMORY
        assert not ALONE or all_made < ALL_WITHIN

        since, before = time.time(), cpu_seconds(operator.process.pid)
        time.sleep(REST_SECONDS)
        used = (cpu_seconds(operator.process.pid) - before) / REST_SECONDS
        assert written(plane, since) == []
        grown = memory(operator.process.pid) - resident
        print(f"S2: at rest {100 * used:.2f} % of a core, no writes, {grown / 2**20:+.1f} MB")
        assert used < MOST_CPU_AT_REST
        assert grown < 5 * 2**20

        operator.process.stop()
        since = time.time()
        operator.process.start()
        begun = time.monotonic()
        operator.process.wait_until(lambda: is_admitted(plane, namespace), 300)
        ready = time.monotonic() - begun
        time.sleep(20)
        used = cpu_seconds(operator.process.pid)
        assert written(plane, since) == []
        print(f"S3: ready again after {ready:.1f} s, {1000 * used / JOBS:.2f} ms of CPU for each job, no writes")
        assert used < max(3.0, MOST_CPU_OF_A_RESTART * JOBS)
        assert not ALONE or ready < 15
    finally:
        operator.process.stop(grace=5)
        installed.uninstall()
        plane.admin.delete(f"/api/v1/namespaces/{namespace}")


def create_in_time(plane: RealControlPlane, namespace: str, number: int, begun: float) -> None:
    """Not before its turn, at so many a second."""
    time.sleep(max(0.0, begun + number / A_SECOND - time.monotonic()))
    plane.admin.create(f"{base(namespace)}/trainjobs", trainjob(f"job-{number:05}", "it", suspend=True))
