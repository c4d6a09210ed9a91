"""Gangs by Volcano 1.10, with its real scheduler and controller: all pods of a TrainJob, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.gangs import (
    Gang,
    check_privileges,
    elastic_counts_its_fewest,
    end,
    gang_of,
    gang_pods,
    placed,
    size_by,
    until_said,
    whole_or_not_at_all,
)
from kube.binaries import build
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import Installation
from kube.stories import create
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.processes import Process, free_port
from trainwright.testing.rest import Rest
from waiting import eventually

API = "/apis/scheduling.volcano.sh/v1beta1"
VOLCANO = Gang({"volcano": {}}, f"{API}/namespaces/{{}}/podgroups", size_by("minMember"), "volcano")
QUEUE = "scheduling.volcano.sh/queue-name"
SCHEDULER = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    directory = tmp_path_factory.mktemp("volcano")
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane")) as running:
        running.install_crds(crds())  # before ours: the real one has no networkTopology
        install_crds(running)
        for name in ("kubeflow-system", "volcano-system"):
            running.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
        parts = [volcano(running, directory, "controller-manager"), volcano(running, directory, "scheduler")]
        try:
            running.admin.until(f"{API}/queues/default", bool, what="Volcano's default queue", seconds=60)
            with Installation(running, overlay="manager"):
                yield running
        finally:
            for part in parts:
                part.stop(grace=0)


def crds() -> Iterator[dict[str, object]]:
    for path in sorted(build.manifests("volcano-manifests").glob("config/crd/*/bases/*.yaml")):
        yield from documents(path.read_text())


def volcano(plane: RealControlPlane, directory: Path, part: str) -> Process:
    (directory / "scheduler.conf").write_text(SCHEDULER)
    health = free_port()
    arguments: list[str | Path] = [
        build.program(f"volcano-{part}"),
        f"--kubeconfig={plane.user_kubeconfig(f'volcano-{part}', 'system:masters')}",
        "--leader-elect=false",
        "--enable-healthz=true",
        f"--healthz-address=127.0.0.1:{health}",
        *((f"--scheduler-conf={directory / 'scheduler.conf'}",) if part == "scheduler" else ()),
    ]
    process = Process(f"volcano-{part}", arguments, directory / f"{part}.log")
    process.start()
    probe = Rest(f"http://127.0.0.1:{health}", None)
    process.wait_until(lambda: probe.raw("GET", "/healthz")[0] == 200, 60)
    return process


def test_a_gang_starts_whole_or_not_at_all_and_initializers_do_not_count(plane: RealControlPlane) -> None:
    whole_or_not_at_all(plane, VOLCANO, plane.namespace())


def test_a_gang_that_waits_says_why_in_volcanos_words(plane: RealControlPlane) -> None:
    here = plane.namespace()
    create(plane.admin, here, VOLCANO.runtime(), gang_of(3))
    until_said(plane, here, "its pods wait together", "gang unschedulable")
    assert placed(plane, here) == []
    end(plane, here)


def test_an_elastic_gang_needs_its_fewest_nodes(plane: RealControlPlane) -> None:
    elastic_counts_its_fewest(plane, VOLCANO, plane.namespace())


def test_an_unknown_queue_is_named_in_the_message(plane: RealControlPlane) -> None:
    here = plane.namespace()
    job = gang_of(2)
    job["spec"]["annotations"] = {QUEUE: "nobody"}
    create(plane.admin, here, VOLCANO.runtime(), job)
    message = until_said(plane, here, "Volcano", '"nobody"')
    assert "kubectl get queues.scheduling.volcano.sh" in message, "what to do"
    assert len(gang_pods(plane, here)) == 2
    assert placed(plane, here) == []
    # The queue is made: the job starts by itself, and its message is of no queue any more.
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "nobody"}}
    plane.admin.create(f"{API}/queues", {**queue, "spec": {"weight": 1, "reclaimable": True}})
    eventually("both have a node", lambda: len(placed(plane, here)) == 2, 120)
    until_said(plane, here, "running")
    end(plane, here)


def test_zz_nothing_was_forbidden_and_no_grant_for_volcano_is_unused(plane: RealControlPlane) -> None:
    check_privileges(plane, Installation(plane, overlay="manager").roles, "scheduling.volcano.sh")
