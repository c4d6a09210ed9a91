"""The page of a real control plane, with a token that may read one namespace: it shows that namespace only."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from browser.site import Visitor
from commandline import COMMAND
from kube.binaries import build
from kube.crds import install_crds
from selfcheck.leftovers import Processes
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane

VIEWER = Path(__file__).resolve().parents[2] / "manifests" / "components" / "dashboard" / "viewer.yaml"


class BuiltPrograms:
    def program(self, name: str) -> Path:
        return build.program(name)

    def manifests(self, name: str) -> Path:
        return build.manifests(name)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    parts = ("kube-controller-manager",)
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane"), with_parts=parts) as running:
        install_crds(running)
        yield running


def _job(name: str) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "suspend": True},
    }


def _viewer_of(plane: RealControlPlane, namespace: str) -> str:
    """The token of a service account that has the shipped role in one namespace."""
    role: Json = yaml.safe_load(VIEWER.read_text())
    if not plane.admin.find(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role['metadata']['name']}"):
        plane.admin.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    plane.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "looker"}})
    binding = {
        "metadata": {"name": "looker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "looker", "namespace": namespace}],
    }
    plane.admin.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", binding)
    asked = plane.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/looker/token", {"spec": {}})
    return str(asked["status"]["token"])


def test_a_viewer_of_one_namespace_sees_that_one_only(
    plane: RealControlPlane, visit: Callable[..., Visitor], processes: Processes
) -> None:
    mine, other = plane.namespace(), plane.namespace()
    for namespace, name in ((mine, "mine"), (other, "secret")):
        plane.admin.create(f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs", _job(name))
    token = _viewer_of(plane, mine)
    page_server = processes.start(
        [
            *COMMAND,
            "dashboard",
            "--kubeconfig",
            str(plane.user_kubeconfig("nobody", "nothing")),
            "--host",
            "127.0.0.1",
            "--port",
            "0",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert page_server.stdout is not None
    found = re.search(r"port (\d+)", page_server.stdout.readline())
    assert found is not None
    visitor = visit(f"http://127.0.0.1:{found[1]}")
    page = visitor.go("/")
    page.get_by_label("The token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("does not accept this token").wait_for()
    page.get_by_label("The token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="mine").wait_for()
    page.get_by_text(f"system:serviceaccount:{mine}:looker").wait_for()
    assert "secret" not in page.inner_text("main")
    assert page.get_by_role("button", name="Delete").count() == 0

    page.get_by_label("Namespace").fill(other)
    page.keyboard.press("Enter")
    page.get_by_text(re.compile("trainjobs.* is forbidden")).wait_for()
    assert "secret" not in page.inner_text("main")
    visitor.go(f"/jobs/{other}/secret")
    page.get_by_text(re.compile("is forbidden")).first.wait_for()
    visitor.go(f"/jobs/{mine}/mine")
    page.locator(".head .state.suspended").wait_for()
    page.get_by_text("read-only").wait_for()

    csrf = page.evaluate("fetch('/api/me').then((answer) => answer.json()).then((me) => me.csrf)")
    assert csrf
    assert not [url for url in visitor.requests if token in url]
    payload = base64.urlsafe_b64encode(token.encode())[:20].decode()
    assert payload not in str(page.context.cookies()), "the cookie names a session, and tells nothing of the token"
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("The token").wait_for()
