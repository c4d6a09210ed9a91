"""Gangs by scheduler-plugins' coscheduling, with its real scheduler: all pods of a TrainJob, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.gangs import (
    Gang,
    check_privileges,
    elastic_counts_its_fewest,
    end,
    gang_of,
    size_by,
    until_said,
    whole_or_not_at_all,
)
from kube.binaries import build
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import Installation
from kube.stories import create
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.processes import Process, free_port

NAME = "coscheduling"
COSCHEDULING = Gang(
    {"coscheduling": {"scheduleTimeoutSeconds": 5}},
    "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups",
    size_by("minMember"),
    NAME,
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    directory = tmp_path_factory.mktemp("coscheduling")
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane")) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        process = scheduler(running, directory)
        process.start()
        try:
            with Installation(running, overlay="manager"):
                yield running
        finally:
            process.stop(grace=0)


def scheduler(plane: RealControlPlane, directory: Path) -> Process:
    kubeconfig = plane.user_kubeconfig(f"system:{NAME}", "system:masters")
    plugin = {"enabled": [{"name": "Coscheduling"}]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [
            {
                "schedulerName": NAME,
                "plugins": {"multiPoint": plugin, "queueSort": {**plugin, "disabled": [{"name": "*"}]}},
                "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 5}}],
            }
        ],
    }
    file = directory / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    arguments: list[str | Path] = [
        build.program("coscheduling"),
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
    return Process(NAME, arguments, directory / "coscheduling.log")


def test_a_gang_starts_whole_or_not_at_all_and_initializers_do_not_count(plane: RealControlPlane) -> None:
    whole_or_not_at_all(plane, COSCHEDULING, plane.namespace())


def test_an_elastic_gang_needs_its_fewest_nodes(plane: RealControlPlane) -> None:
    elastic_counts_its_fewest(plane, COSCHEDULING, plane.namespace())


def test_a_gang_that_waits_says_why(plane: RealControlPlane) -> None:
    here = plane.namespace()
    create(plane.admin, here, COSCHEDULING.runtime(), gang_of(3))
    message = until_said(plane, here, " waits", "nodes are available")
    assert "Insufficient cpu" in message or "Use fewer nodes or ask for less on each" in message
    end(plane, here)


def test_zz_nothing_was_forbidden_and_no_grant_for_coscheduling_is_unused(plane: RealControlPlane) -> None:
    check_privileges(plane, Installation(plane, overlay="manager").roles, "scheduling.x-k8s.io")
