"""With 1,000 converged TrainJobs the operator writes nothing but its Lease and hardly uses any CPU."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kube.installation import USER, Installation
from kube.stories import TORCH, base, create, runtime, trainjob
from kube.test_operator_faults import OperatorProcess
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane

JOBS = 1000
SECONDS = 60.0
CONVERGED_WITHIN_SECONDS = 600  # 60 on two free cores; that they stand still is what is judged
MOST_CPU = 0.02


class Unhurried(Installation):
    def configuration(self) -> str:
        return super().configuration() + "clientConnection: {qps: 0}\n"


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(1200)
def test_with_a_thousand_converged_jobs_nothing_is_written_for_a_minute(
    plane: RealControlPlane, tmp_path: Path
) -> None:
    namespace = plane.namespace("idle")
    installed = Unhurried(plane, overlay="manager")
    installed.install()
    operator = OperatorProcess(installed, "idle", tmp_path)
    operator.process.start()
    try:
        operator.process.wait_until(lambda: is_admitted(plane, namespace), 60)
        create(plane.admin, namespace, runtime("it", TORCH))
        with ThreadPoolExecutor(8) as pool:
            jobs = (trainjob(f"job-{number:04}", "it", suspend=True) for number in range(JOBS))
            list(pool.map(lambda job: create(plane.admin, namespace, job), jobs))
        wait_until_converged(plane, namespace)
        since, used = time.time(), cpu_seconds(operator.process.pid)
        time.sleep(SECONDS)
        used = cpu_seconds(operator.process.pid) - used
        mine = requests(plane.audit_events(), user=USER)
        written = [str(it) for it in mine if it.is_write and it.at > since and it.resource != "leases"]
        assert written == []
        assert used / SECONDS < MOST_CPU, f"{used:.2f} s of CPU in {SECONDS:.0f} s"
        print(f"idle with {JOBS} TrainJobs: {100 * used / SECONDS:.2f} % of a core")
    finally:
        # While the operator is there to take its finalizer off the runtime; and waited for, since the tests that follow
        # shall not stand behind a thousand jobs.
        here = f"/api/v1/namespaces/{namespace}"
        try:
            plane.admin.delete(here)
            plane.admin.until(here, lambda found: found is None, what="gone", seconds=300)
        finally:
            operator.process.stop(grace=5)
            installed.uninstall()


def is_admitted(plane: RealControlPlane, namespace: str) -> bool:
    """The webhooks answer: a runtime can be created."""
    code, _ = plane.admin.raw("POST", f"{base(namespace)}/trainingruntimes?dryRun=All", runtime("probe", TORCH))
    return code == 201


def wait_until_converged(plane: RealControlPlane, namespace: str) -> None:
    """Every job is suspended, has its JobSet, and nothing of it has changed for five seconds."""
    end = time.monotonic() + CONVERGED_WITHIN_SECONDS
    seen, still = "", 0
    while still < 5:
        assert time.monotonic() < end, f"the jobs did not converge in {CONVERGED_WITHIN_SECONDS} s"
        time.sleep(1)
        jobs = plane.admin.get(f"{base(namespace)}/trainjobs")
        versions = plane.admin.get(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets")["items"]
        states = [(job.get("status") or {}).get("state") for job in jobs["items"]]
        now = str([it["metadata"]["resourceVersion"] for it in (*jobs["items"], *versions)])
        settled = states.count("Suspended") == JOBS and len(versions) == JOBS and now == seen
        still = still + 1 if settled else 0
        seen = now
