"""Kubernetes' own gang scheduling (1.36, alpha) with the real kube-scheduler: all pods of a TrainJob, or none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import MANIFESTS, Installation
from kube.stories import create
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import CONTROLLERS, RealControlPlane, documents

GATES = ("GenericWorkload", "GangScheduling")
KUBERNETES = Gang(
    {"kubernetes": {}},
    "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups",
    size_by("schedulingPolicy", "gang", "minCount"),
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    with RealControlPlane(
        BuiltPrograms(),
        tmp_path_factory.mktemp("gang"),
        controllers=(*CONTROLLERS, "podgroup-protection-controller"),
        feature_gates=GATES,
        served=("scheduling.k8s.io/v1alpha2",),
    ) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        role = (MANIFESTS / "components" / "kubernetes-gang" / "cluster_role.yaml").read_text()
        for item in documents(role):
            plural = f"{item['kind'].lower()}s"
            running.admin.create(f"/apis/rbac.authorization.k8s.io/v1/{plural}", item)
        with Installation(running, overlay="manager", feature_gates=("KubernetesGang",)):
            yield running


def roles() -> list[Json]:
    """What the component grants beside the shipped role."""
    found = documents((MANIFESTS / "components" / "kubernetes-gang" / "cluster_role.yaml").read_text())
    return [item for item in found if item["kind"] == "ClusterRole"]


def test_a_gang_starts_whole_or_not_at_all_and_initializers_do_not_count(plane: RealControlPlane) -> None:
    whole_or_not_at_all(plane, KUBERNETES, plane.namespace())


def test_an_elastic_gang_needs_its_fewest_nodes(plane: RealControlPlane) -> None:
    elastic_counts_its_fewest(plane, KUBERNETES, plane.namespace())


def test_a_gang_that_waits_says_why_in_the_schedulers_words(plane: RealControlPlane) -> None:
    here = plane.namespace()
    create(plane.admin, here, KUBERNETES.runtime(), gang_of(3))
    until_said(plane, here, "its pods wait together")
    end(plane, here)


def test_zz_nothing_was_forbidden_and_no_grant_of_the_component_is_unused(plane: RealControlPlane) -> None:
    check_privileges(plane, roles())
