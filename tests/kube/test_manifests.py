"""The manifests that we ship: kustomize builds them, a real API server takes them, and they ask for little."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

import trainwright
from kube.conftest import BuiltPrograms
from kubectl.kubectl import Kubectl
from trainwright.operator.configfile import parse
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.grants import grants
from waiting import eventually

MANIFESTS = Path(trainwright.__file__).resolve().parent.joinpath("manifests").resolve()
OVERLAYS = sorted(path.parent.name for path in (MANIFESTS / "overlays").glob("*/kustomization.yaml"))
FORBIDDEN_RESOURCES = {"pods/exec", "pods/attach", "pods/portforward", "nodes", "serviceaccounts/token"}
FORBIDDEN_VERBS = {"escalate", "bind", "impersonate"}


@pytest.fixture(scope="module")
def kubectl(plane: RealControlPlane, programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(programs.program("kubectl"), plane.admin_kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module", params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> Path:
    return MANIFESTS / "overlays" / str(request.param)


def built(kubectl: Kubectl, overlay: Path) -> list[Json]:
    result = kubectl("kustomize", str(overlay))
    assert (result.code, result.err) == (0, ""), result.text
    return list(documents(result.out))


def of_kind(items: list[Json], *kinds: str) -> list[Json]:
    return [item for item in items if item["kind"] in kinds]


def test_kustomize_builds_it(kubectl: Kubectl, overlay: Path) -> None:
    assert built(kubectl, overlay)


def test_the_api_server_takes_it(kubectl: Kubectl, overlay: Path) -> None:
    """The plane has our CRDs and the namespace already, as a second `kubectl apply` would find them."""
    result = kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", str(overlay))
    assert result.code == 0, result.text
    assert "Warning" not in result.err, result.err


def test_client_side_apply_takes_it_too(kubectl: Kubectl, overlay: Path) -> None:
    """CRDs are too large for the annotation that client-side apply keeps; everything else must fit."""
    small = [item for item in built(kubectl, overlay) if item["kind"] != "CustomResourceDefinition"]
    result = kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(small))
    assert result.code == 0, result.text


def test_its_pods_pass_the_restricted_pod_security_standard(
    plane: RealControlPlane, kubectl: Kubectl, overlay: Path
) -> None:
    namespace = plane.namespace("restricted", {"pod-security.kubernetes.io/enforce": "restricted"})
    for deployment in of_kind(built(kubectl, overlay), "Deployment"):
        assert deployment["spec"]["replicas"] == (1 if overlay.name == "dashboard" else 2)
        template = deployment["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {"name": "operator", "labels": template["metadata"]["labels"]}
        pod["spec"] = {**template["spec"], "serviceAccountName": "default"}
        plane.admin.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_its_roles_grant_nothing_dangerous(kubectl: Kubectl, overlay: Path) -> None:
    for role in of_kind(built(kubectl, overlay), "Role", "ClusterRole"):
        for grant in grants(role):  # refuses wildcards
            assert grant.resource not in FORBIDDEN_RESOURCES, str(grant)
            assert grant.verb not in FORBIDDEN_VERBS, str(grant)
            if grant.resource == "secrets" and role["kind"] == "ClusterRole":
                assert grant.verb == "create", f"{role['metadata']['name']}: {grant}"
            if grant.resource.endswith("webhookconfigurations") and grant.verb in ("update", "patch", "delete"):
                assert grant.name, f"{role['metadata']['name']}: {grant} is not bound to a name"


def test_its_webhooks_look_at_our_own_kinds_only(kubectl: Kubectl, overlay: Path) -> None:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    for configuration in of_kind(built(kubectl, overlay), *kinds):
        for webhook in configuration["webhooks"]:
            assert {group for rule in webhook["rules"] for group in rule["apiGroups"]} == {"trainer.kubeflow.org"}
            assert webhook["failurePolicy"] == "Fail"
            assert webhook["sideEffects"] == "None"
            assert webhook.get("timeoutSeconds", 10) <= 10


def test_a_directory_of_plugins_is_mounted_where_the_configuration_names_it(kubectl: Kubectl, tmp_path: Path) -> None:
    """The kustomization that docs/operator.md shows."""
    shipped = Path(os.path.relpath(MANIFESTS, tmp_path))
    configuration = (MANIFESTS / "base" / "manager" / "controller_manager_config.yaml").read_text()
    named = f"{configuration}plugins: {{directory: /etc/trainwright/plugins}}\n"
    (tmp_path / "controller_manager_config.yaml").write_text(named)
    generated = {"name": "kubeflow-trainer-config", "namespace": "kubeflow-system", "behavior": "replace"}
    kustomization = {
        "resources": [str(shipped / "overlays" / "manager")],
        "components": [str(shipped / "components" / "plugins")],
        "configMapGenerator": [{**generated, "files": ["controller_manager_config.yaml"]}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    items = built(kubectl, tmp_path)
    [config] = [it for it in of_kind(items, "ConfigMap") if it["metadata"]["name"] == generated["name"]]
    directory = parse(config["data"]["controller_manager_config.yaml"]).plugins.directory
    [deployment] = of_kind(items, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [mount] = [it for it in pod["containers"][0]["volumeMounts"] if it["mountPath"] == directory]
    [volume] = [it for it in pod["volumes"] if it["name"] == mount["name"]]
    assert (mount["readOnly"], volume["configMap"]) == (True, {"name": "trainwright-plugins", "optional": True})


def test_who_may_edit_a_namespace_may_edit_its_trainjobs_and_who_may_view_it_may_view_them(
    plane: RealControlPlane, kubectl: Kubectl
) -> None:
    """The shipped roles join Kubernetes' own: nobody writes a role of his own for TrainJobs."""
    here = plane.namespace()
    rules = of_kind(built(kubectl, MANIFESTS / "overlays" / "manager"), "ClusterRole")
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for item in rules:
        if item["metadata"]["name"] in ("kubeflow-trainer-edit", "kubeflow-trainer-view"):
            plane.admin.apply(f"{rbac}/clusterroles/{item['metadata']['name']}", item)
    for role, name in (("edit", "some-editor"), ("view", "some-viewer")):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        }
        plane.admin.create(f"{rbac}/namespaces/{here}/rolebindings", binding)

    def may(user: str, verb: str) -> bool:
        attributes = {"namespace": here, "verb": verb, "group": "trainer.kubeflow.org", "resource": "trainjobs"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        }
        answer = plane.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    eventually("the roles joined", lambda: may("some-editor", "create") and may("some-viewer", "list"))
    assert not may("some-viewer", "create")
    assert not may("somebody-else", "list")
