"""cert-manager 1.19: the chart's objects for it, judged by its own CRDs on a real API server.

Its programs are not run: they are modules without versions, which Go's registry does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from kube.binaries import build
from kube.conftest import BuiltPrograms
from trainwright.installation import composition, values
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.rest import Refused

NAMESPACE = "training"
API = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane"), with_parts=()) as running:
        crds = build.manifests("cert-manager-manifests") / "deploy/crds"
        running.install_crds(
            crd for name in ("certificates", "issuers") for crd in documents((crds / _file(name)).read_text())
        )
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield running


def _file(plural: str) -> str:
    return f"cert-manager.io_{plural}.yaml"


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], Json]:
    chosen = values.complete({"certManager": {"enabled": True}})
    return {(item["kind"], item["metadata"]["name"]): item for item in composition.objects(chosen, NAMESPACE)}


def one(objects: dict[tuple[str, str], Json], kind: str) -> Json:
    (found,) = (item for (each, _), item in objects.items() if each == kind)
    return found


@pytest.mark.parametrize("kind", ["Issuer", "Certificate"])
def test_the_objects_are_valid_by_cert_managers_crds(
    plane: RealControlPlane, objects: dict[tuple[str, str], Json], kind: str
) -> None:
    item = one(objects, kind)
    path = f"{API}/{kind.lower()}s?fieldValidation=Strict"
    plane.admin.create(path, item)
    wrong = {**item, "metadata": {"name": "wrong"}, "spec": {**item["spec"], "secretNome": "typo"}}
    with pytest.raises(Refused, match="secretNome"):
        plane.admin.create(path, wrong)


def test_certificate_secret_webhooks_and_operator_fit_together(objects: dict[tuple[str, str], Json]) -> None:
    certificate, issuer = one(objects, "Certificate"), one(objects, "Issuer")
    assert certificate["spec"]["issuerRef"]["name"] == issuer["metadata"]["name"]
    service = f"kubeflow-trainer-controller-manager.{NAMESPACE}.svc"
    assert service in certificate["spec"]["dnsNames"]
    source = f"{NAMESPACE}/{certificate['metadata']['name']}"
    hooks = [item for (kind, _), item in objects.items() if kind.endswith("WebhookConfiguration")]
    assert [item["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] for item in hooks] == [source, source]
    text = objects["ConfigMap", composition.CONFIG]["data"][composition.CONFIG_FILE]
    settings = yaml.safe_load(text)["certManagement"]
    assert settings["enable"] is False
    pod = objects["Deployment", composition.MANAGER]["spec"]["template"]["spec"]
    (volume,) = (it for it in pod["volumes"] if (it.get("secret") or {}).get("secretName"))
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    (mount,) = (it for it in pod["containers"][0]["volumeMounts"] if it["name"] == volume["name"])
    assert mount["mountPath"] == settings["certDir"]
