"""Outages of a real control plane: what trains goes on, what is submitted meanwhile is delivered once and completes.

A plan says who is away and for how long. One job is handed over by `submit`, one by `run --detach`.
`TRAINWRIGHT_OUTAGES=long` has thirty plans, three of ten minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kube.installation import Installation
from kube.stories import TORCH, base, create, jobsets, runtime, trainjob, until_state
from trainwright.api.wellknown import RUN
from trainwright.runs.outbox import Outbox
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane
from waiting import eventually

SECONDS = 120.0


class Plan(NamedTuple):
    """`away` are parts of the control plane; `operator` is ours. Work is submitted when `after` of the time is over."""

    away: tuple[str, ...]
    seconds: float
    after: float = 0.5

    def __str__(self) -> str:
        return f"{'+'.join(self.away)}-{self.seconds:g}s-{self.after:g}"


SHORT = [
    Plan(("kube-apiserver",), 10),
    Plan(("kube-apiserver",), 25, 0.1),
    Plan(("etcd",), 10, 0.9),
    Plan(("jobset", "kube-controller-manager"), 10),
    Plan(("operator",), 10),
]
PARTS = (
    ("kube-apiserver",),
    ("etcd",),
    ("etcd", "kube-apiserver"),
    ("jobset",),
    ("operator",),
    ("kube-apiserver", "operator"),
)
LONG = [
    *(
        Plan(parts, seconds, after)
        for parts in PARTS
        for seconds, after in ((10, 0.0), (20, 0.5), (45, 0.9), (90, 0.2))
    ),
    *(Plan(parts, 30, 1.0) for parts in PARTS[:3]),
    *(Plan(parts, 600, 0.5) for parts in PARTS[:3]),
]
PLANS = LONG if os.environ.get("TRAINWRIGHT_OUTAGES") == "long" else SHORT


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    with Installation(plane, lease_seconds=8) as running:
        yield running


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_an_outage_ends_as_if_it_had_not_been(
    plane: RealControlPlane, installed: Installation, tmp_path: Path, plan: Plan
) -> None:
    namespace = plane.namespace("outage")
    create(plane.admin, namespace, runtime("it", TORCH), trainjob("before", "it", "hang"))
    until_state(plane.admin, namespace, "Running", "before")
    uids = pods(plane, namespace)
    submit(plane, namespace, tmp_path)  # so that the runtimes have been seen
    names = [f"job-{number}" for number in range(2)]
    begun = time.monotonic()
    for part in plan.away:
        if part == "operator":
            installed.operator.__exit__(None, None, None)
        else:
            plane.parts[part].stop(0)
    try:
        time.sleep(plan.seconds * plan.after)
        for name, words in zip(names, (("submit",), ("run", "--detach")), strict=True):
            submit(plane, namespace, tmp_path, trainjob(name, "it"), words)
        time.sleep(max(0.0, plan.seconds - (time.monotonic() - begun)))
    finally:
        for part in plan.away:  # the operator last: its start waits until it is ready
            if part == "operator":
                installed.operator = installed.run_operator()
                installed.operator.__enter__()
            else:
                plane.parts[part].start()
        returned = time.monotonic()
        eventually("the API server is back", lambda: is_ready(plane), 240)
        answers = time.monotonic()
    took = acts_after(plane, namespace)
    print(f"{plan}: answers {answers - returned:.1f} s after its start; {took:.1f} s later a new job has its JobSet")
    eventually("all is delivered", lambda: not Outbox(tmp_path / "state").waiting(), SECONDS)
    for name in names:
        job = until_state(plane.admin, namespace, "Complete", name)
        [entry] = [run for run in recorded(tmp_path) if run["name"] == name]
        assert job["metadata"]["annotations"][RUN] == entry["id"], "delivered once"
    assert pods(plane, namespace) == uids, "what trained went on, and nobody restarted it"
    assert len(plane.admin.items(f"{base(namespace)}/trainjobs")) == 4
    assert len(plane.admin.items(jobsets(namespace))) == 4
    print(f"{plan}: all complete {time.monotonic() - answers:.1f} s after the API's return")
    plane.admin.delete(f"{base(namespace)}/trainjobs/before")


def acts_after(plane: RealControlPlane, namespace: str) -> float:
    """Seconds until the operator has made the JobSet of a TrainJob that is created now."""
    begun = time.monotonic()
    job = trainjob("at-once", "it")

    def is_taken() -> bool:
        code, _ = plane.admin.raw("POST", f"{base(namespace)}/trainjobs", job)[:2]
        return code in (201, 409)

    eventually("the API server takes a TrainJob", is_taken, 60)
    print(f"taken after {time.monotonic() - begun:.1f} s")
    eventually("its JobSet", lambda: plane.admin.find(f"{jobsets(namespace)}/at-once"), 60)
    return time.monotonic() - begun


def is_ready(plane: RealControlPlane) -> bool:
    try:
        return plane.is_ready()
    except OSError:
        return False


def pods(plane: RealControlPlane, namespace: str) -> set[str]:
    query = {"labelSelector": "jobset.sigs.k8s.io/jobset-name=before"}
    return {pod["metadata"]["uid"] for pod in plane.admin.items(f"/api/v1/namespaces/{namespace}/pods", **query)}


def submit(
    plane: RealControlPlane,
    namespace: str,
    tmp_path: Path,
    job: Json | None = None,
    words: tuple[str, ...] = ("submit",),
) -> None:
    command = [sys.executable, "-m", "trainwright.cli.main", *words, "-n", namespace]
    if job is not None:
        file = tmp_path / "submitted.json"
        file.write_text(json.dumps(job))
        command.append(str(file))
    command += ["--kubeconfig", str(plane.admin_kubeconfig), "--dir", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def recorded(tmp_path: Path) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "trainwright.cli.main", "runs", "-o", "json", "--dir", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    listed: list[dict[str, str]] = json.loads(done.stdout)
    return listed
