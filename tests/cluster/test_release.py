"""A life of an installation on a real control plane: by Helm, and by `trainwright install`.

Deployments are real and KWOK runs their pods; what such a pod would do, the operator, runs here under the installed
service account. Webhooks are called by URL, which a post-renderer of Helm writes in place of the Service.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.binaries import build
from kube.conftest import BuiltPrograms
from kube.installation import ACCOUNT, NAMESPACE, USER, Installation
from kube.stories import base, jobsets, until_state
from trainwright.installation.kustomize import ROOT
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import CONTROLLERS, CRDS, RealControlPlane, documents
from trainwright.testing.nodes import OUTCOME_VARIABLE
from trainwright.testing.rest import Refused, Rest
from waiting import eventually

CHART = ROOT.parent / "charts/trainwright"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{ACCOUNT}"
POLICY = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{ACCOUNT}"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/defaulter.trainer.kubeflow.org"
FINALIZER = "trainer.kubeflow.org/resource-in-use"
OURS = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")

RENDERER = """#!{python}
import sys, yaml
items = [item for item in yaml.load_all(sys.stdin, Loader=yaml.CSafeLoader) if item]
for item in items:
    for webhook in item.get("webhooks") or ():
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = "https://127.0.0.1:{port}" + path
yaml.dump_all(items, sys.stdout, Dumper=yaml.CSafeDumper)
"""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    controllers = (*CONTROLLERS, "deployment-controller", "replicaset-controller")
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("release"), controllers=controllers) as running:
        yield running


class Release(Installation):
    """Installed by Helm; the operator runs here with the account that Helm made."""

    def __init__(self, plane: RealControlPlane, directory: Path) -> None:
        super().__init__(plane, overlay="manager")
        self.renderer = directory / "renderer"
        self.renderer.write_text(RENDERER.format(python=sys.executable, port=self.webhook_port))
        self.renderer.chmod(0o755)
        self.home = directory

    def install(self) -> None:
        said = self.helm("install", "trainwright", CHART, "--create-namespace", "--set", "runtimes.enabled=true")
        assert "The CRDs are new, so the runtimes are not installed yet" in said
        self.upgrade()
        self.kubeconfig = self.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)

    def upgrade(self, *settings: str) -> None:
        sets = [word for setting in settings for word in ("--set", setting)]
        self.helm("upgrade", "trainwright", CHART, "--reset-then-reuse-values", "--wait", *sets)

    def uninstall(self) -> None:
        """The test itself has done so."""

    def helm(self, verb: str, *words: str | Path) -> str:
        renderer = ["--post-renderer", str(self.renderer)] if verb in ("install", "upgrade") else []
        argv = [str(build.program("helm")), verb, *map(str, words), "--namespace", NAMESPACE, *renderer]
        environment = {**os.environ, "KUBECONFIG": str(self.plane.admin_kubeconfig), "HOME": str(self.home)}
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def trainwright(plane: RealControlPlane, *words: str, code: int = 0, kubeconfig: Path | None = None) -> str:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig or plane.admin_kubeconfig)}
    argv = [sys.executable, "-m", "trainwright.cli.main", *words]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def job(name: str, outcome: str) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": 2, "env": [{"name": OUTCOME_VARIABLE, "value": outcome}]},
        },
    }


def start(plane: RealControlPlane, here: str, name: str, outcome: str) -> str:
    plane.admin.create(f"{base(here)}/trainjobs", job(name, outcome))
    until_state(plane.admin, here, "Running" if outcome == "hang" else "Complete", name)
    uid: str = plane.admin.get(f"{jobsets(here)}/{name}")["metadata"]["uid"]
    return uid


def left(plane: RealControlPlane) -> list[str]:
    """Objects named as those of an installation, in every kind that one consists of."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    admission = "/apis/admissionregistration.k8s.io/v1"
    own = f"/api/v1/namespaces/{NAMESPACE}"
    paths = [
        *(f"{rbac}/{plural}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")),
        *(f"{admission}/validatingadmissionpolic{end}" for end in ("ies", "ybindings")),
        *(f"{admission}/{kind}webhookconfigurations" for kind in ("mutating", "validating")),
        *(f"{own}/{plural}" for plural in ("serviceaccounts", "configmaps", "services", "secrets")),
        f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
        f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ]
    names = [(path, item["metadata"]["name"]) for path in paths for item in plane.admin.items(path)]
    return [f"{path}/{name}" for path, name in names if "trainer" in name or "trainwright" in name]


def finalizers(plane: RealControlPlane) -> list[str]:
    return [each for item in plane.admin.items(RUNTIMES) for each in item["metadata"].get("finalizers") or ()]


def be_the_kubelet_of_the_hook(plane: RealControlPlane, release: Release) -> None:
    """Runs the command of the hook's pod with the hook's account, then says that the pod succeeded."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"

    def hooks() -> list[Json]:
        return [pod for pod in plane.admin.items(pods) if pod["metadata"]["name"].startswith("kubeflow-trainer-clean")]

    eventually("the hook's pod", lambda: bool(hooks()), seconds=120)
    release.operator.__exit__(None, None, None)  # the kubelet has ended it with its Deployment
    (pod,) = hooks()
    account = plane.service_account_kubeconfig(NAMESPACE, pod["spec"]["serviceAccountName"])
    said = trainwright(plane, *pod["spec"]["containers"][0]["args"], kubeconfig=account)
    assert "1 runtimes had the operator's finalizer" in said
    status = {"status": {"phase": "Succeeded"}}
    plane.admin.patch(f"{pods}/{pod['metadata']['name']}/status", status)


def test_helm_installs_upgrades_rolls_back_and_uninstalls(plane: RealControlPlane, tmp_path: Path) -> None:
    begin = plane.audit_position()
    with Release(plane, tmp_path) as release:
        here = plane.namespace()
        uid = start(plane, here, "long", "hang")
        start(plane, here, "short", "complete")
        assert FINALIZER in finalizers(plane)

        said = trainwright(plane, "install", "--yes", code=1)
        assert "belongs to the Helm release trainwright in namespace kubeflow-system" in said

        release.upgrade("replicas=3", "admissionPolicy.enabled=true", "priorityClass.enabled=true")
        assert plane.admin.get(DEPLOYMENT)["spec"]["replicas"] == 3
        assert plane.admin.get(WEBHOOKS)["webhooks"][0]["clientConfig"]["caBundle"]
        confined(plane, here)
        start(plane, here, "after", "complete")  # the policy lets the operator do its work

        release.helm("rollback", "trainwright", "2", "--wait")
        assert plane.admin.get(DEPLOYMENT)["spec"]["replicas"] == 2
        assert plane.admin.find(POLICY) is None
        start(plane, here, "again", "complete")

        asked = requests(plane.audit_events(begin), user=USER)  # before its roles go with the release
        plane.parts["kwok"].stop()
        hook = threading.Thread(target=be_the_kubelet_of_the_hook, args=(plane, release))
        hook.start()
        release.helm("uninstall", "trainwright")
        hook.join(60)
        plane.parts["kwok"].start()
        assert plane.admin.get(f"{jobsets(here)}/long")["metadata"]["uid"] == uid

    assert finalizers(plane) == []
    assert {item["metadata"]["name"] for item in plane.admin.items(f"{base(here)}/trainjobs")} == {
        *("long", "short", "after", "again")
    }
    assert len(plane.admin.items(RUNTIMES)) == len(list((ROOT / "runtimes").glob("*.yaml")))
    for plural in OURS:
        assert plane.admin.find(f"{CRDS}/{plural}.trainer.kubeflow.org")
    mine = {f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert"}  # by the operator, not by Helm
    assert set(left(plane)) <= mine
    refused = [it for it in asked if it.code == 403]
    assert {(it.resource, it.name) for it in refused} == {("configmaps", "stranger")}, [str(it) for it in refused]


def confined(plane: RealControlPlane, here: str) -> None:
    """With the admission policy the account can write no object that is not a TrainJob's."""
    stranger = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stranger"}}
    path = f"/api/v1/namespaces/{here}/configmaps"
    account = Rest(plane.server, plane.authority.certificate, token=plane.token(NAMESPACE, ACCOUNT))

    def is_refused() -> bool:
        try:
            account.request("POST", f"{path}?dryRun=All", stranger)
        except Refused as refused:
            return "may only write what a TrainJob controls" in str(refused.status["message"])
        return False

    eventually("the policy holds", is_refused)
    plane.admin.create(path, stranger)
    with pytest.raises(Refused, match="may only write what a TrainJob controls"):
        account.patch(f"{path}/stranger", {"data": {"stolen": "yes"}})


def test_the_command_installs_and_uninstalls(plane: RealControlPlane, tmp_path: Path) -> None:
    """On what Helm has left: CRDs, runtimes and TrainJobs."""
    helms = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
    for path in [f"{CRDS}/{plural}.trainer.kubeflow.org" for plural in OURS] + [
        f"{RUNTIMES}/{item['metadata']['name']}" for item in plane.admin.items(RUNTIMES)
    ]:
        plane.admin.patch(path, {"metadata": {"annotations": dict.fromkeys(helms)}})

    said = trainwright(plane, "install", code=1)
    assert f"create    Deployment {NAMESPACE}/{ACCOUNT}" in said
    assert "Nothing is done. To carry it out, give --yes." in said
    assert plane.admin.find(DEPLOYMENT) is None

    trainwright(plane, "install", "--yes", "--set", "runtimes.enabled=true", "--set", "admissionPolicy.enabled=true")
    eventually("two replicas", lambda: plane.admin.get(DEPLOYMENT)["status"].get("readyReplicas") == 2, seconds=60)
    again = trainwright(plane, "install", "--set", "runtimes.enabled=true", "--set", "admissionPolicy.enabled=true")
    assert "Nothing to do" in again
    assert f"change    Deployment {NAMESPACE}/{ACCOUNT}  spec.replicas" in trainwright(
        plane, "install", "--set", "replicas=4", "--set", "runtimes.enabled=true", code=1
    )

    said = trainwright(plane, "uninstall", "--delete-crds", code=1)
    assert "With the CRDs go 4 TrainJobs, 1 of them unfinished" in said
    said = trainwright(plane, "uninstall", "--yes")
    assert "4 TrainJobs" in said
    assert "stay, and so do the CRDs; pods of the 1 unfinished ones go on" in said
    assert left(plane) == []
    assert finalizers(plane) == []
    assert len(plane.admin.items("/apis/trainer.kubeflow.org/v1alpha1/trainjobs")) == 4
    assert "There is no installation" in trainwright(plane, "uninstall", "--yes")


def test_a_cluster_of_another_operator_is_refused(plane: RealControlPlane) -> None:
    (hooks,) = (
        item
        for item in documents((ROOT / "base/webhook/webhooks.yaml").read_text())
        if item["kind"].startswith("Mutating")
    )
    for webhook in hooks["webhooks"]:
        webhook["clientConfig"]["service"]["namespace"] = "elsewhere"
    collection = WEBHOOKS.rpartition("/")[0]
    plane.admin.create(collection, hooks)
    try:
        said = trainwright(plane, "install", "--yes", code=1)
        assert "calls Service elsewhere/kubeflow-trainer-controller-manager, so another operator serves" in said
        assert plane.admin.find(DEPLOYMENT) is None
    finally:
        plane.admin.delete(WEBHOOKS)
