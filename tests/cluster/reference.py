"""A real Kubeflow Trainer in a cluster, installed as its kustomize files say, and stopped as a platform team does.

In: a real control plane and a version. Out: its CRDs, roles, webhooks, Deployment and runtimes in the cluster, and its
controller manager as a process of this machine with the account and the configuration that it ships with. The webhooks
are called by URL, and it is given certificates: it cannot issue its own without a kubelet that mounts them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from kube.binaries import build
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import CRDS, RealControlPlane, documents, is_established, point_at
from trainwright.testing.processes import Process, free_port
from trainwright.testing.rest import Refused, Rest

NAMESPACE = "kubeflow-system"
ACCOUNT = "kubeflow-trainer-controller-manager"
PROGRAMS = {"2.1": "trainer-2.1", "2.2": "trainer-2.2", "2.3": "trainer"}
RUNTIMES = ("torch_distributed.yaml", "deepspeed_distributed.yaml")
MANAGER = "kubectl"  # who applies, by kubectl's default

COLLECTIONS = {
    "CustomResourceDefinition": CRDS,
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "ClusterTrainingRuntime": "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes",
}


class Reference:
    """`with Reference(plane, directory, "2.3"):` installs and runs it. What it installed stays when the block ends."""

    def __init__(self, plane: RealControlPlane, directory: Path, version: str = "2.3", *, release: str = "") -> None:
        self.plane = plane
        self.version = version
        self.release = release
        """Of Helm: its objects are marked as Helm marks them, and it has the Secret in which Helm remembers it."""
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.webhook, self.health = free_port(), free_port()
        self.process: Process

    def __enter__(self) -> Reference:
        self.install()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def manifests(self) -> Path:
        return build.manifests(f"{PROGRAMS[self.version]}-manifests") / "manifests/base"

    def objects(self) -> Iterator[Json]:
        """What `kubectl apply -k` of its overlay applies, JobSet and the namespace aside."""
        for folder in ("crds", "rbac", "manager", "webhook"):
            for item in self._kustomize(self.manifests / folder):
                if "/namespaces/" in COLLECTIONS[item["kind"]]:
                    item["metadata"]["namespace"] = NAMESPACE
                for subject in item.get("subjects") or ():
                    if subject["kind"] == "ServiceAccount":
                        subject["namespace"] = NAMESPACE
                yield item

    def install(self) -> None:
        """`kubectl apply --server-side --force-conflicts` of everything, and of two of its runtimes."""
        admin = self.plane.admin
        if admin.find(f"/api/v1/namespaces/{NAMESPACE}") is None:
            admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        hooks = []
        for item in self.objects():
            if item["kind"].endswith("WebhookConfiguration"):
                point_at(item, f"https://127.0.0.1:{self.webhook}", self.plane.authority.certificate.read_bytes())
                hooks.append(item)
                continue
            self.apply(item)
            if item["kind"] == "CustomResourceDefinition":
                admin.until(f"{CRDS}/{item['metadata']['name']}", is_established, what="CRD established")
        for name in RUNTIMES:
            for item in documents((self.manifests / "runtimes" / name).read_text()):
                self.apply(item)
        if self.release:
            self._remember_release()
        for item in hooks:  # last: until the program runs they would refuse the runtimes
            self.apply(item)

    def apply(self, item: Json) -> None:
        path = f"{COLLECTIONS[item['kind']]}/{item['metadata']['name']}"
        if self.release and item["kind"] != "ClusterTrainingRuntime":  # those come by a Job of the chart
            marks = {"meta.helm.sh/release-name": self.release, "meta.helm.sh/release-namespace": NAMESPACE}
            labels = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": self.release}
            item["metadata"]["annotations"] = {**(item["metadata"].get("annotations") or {}), **marks}
            item["metadata"]["labels"] = {**(item["metadata"].get("labels") or {}), **labels}
        self.plane.admin.apply(path, item, manager="helm" if self.release else MANAGER)

    def _remember_release(self) -> None:
        labels = {"owner": "helm", "name": self.release, "status": "deployed", "version": "1"}
        secret = {"metadata": {"name": f"sh.helm.release.v1.{self.release}.v1", "labels": labels}}
        self.plane.admin.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", {**secret, "type": "helm.sh/release.v1"})

    def start(self) -> None:
        """Returns when its webhooks answer; it acts when it has the Lease."""
        configuration = self.directory / "trainer.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration()))
        for server in ("k8s-webhook-server", "k8s-metrics-server"):
            folder = self.directory / server / "serving-certs"
            self.plane.authority.for_server("trainer", stem="tls", directory=folder)
        kubeconfig = self.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        flags = [f"--config={configuration}", f"--kubeconfig={kubeconfig}"]
        argv: list[str | Path] = [build.program(PROGRAMS[self.version]), *flags]
        self.process = Process(f"trainer {self.version}", argv, self.directory / "trainer.log")
        self.process.env["TMPDIR"] = str(self.directory)
        self.process.start()
        probe = Rest(f"http://127.0.0.1:{self.health}", None)
        self.process.wait_until(lambda: probe.raw("GET", "/readyz")[0] == 200, 60)
        self.process.wait_until(self._admits, 60)  # its probe answers before its webhooks do

    def _admits(self) -> bool:
        """Whether a TrainJob and a runtime are admitted, by dry runs."""
        job = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "probe"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}},
        }
        runtime = self.plane.admin.get(f"{COLLECTIONS['ClusterTrainingRuntime']}/torch-distributed")
        named = {**runtime, "kind": "TrainingRuntime", "metadata": {"name": "probe"}}
        api = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default"
        try:
            for plural, item in (("trainjobs", job), ("trainingruntimes", named)):
                self.plane.admin.create(f"{api}/{plural}?dryRun=All", item)
        except Refused:
            return False
        return True

    def stop(self) -> None:
        """As a Deployment scaled to zero does: its process is told to end, and ends. Its webhooks are left as it ships
        them, calling its Service.
        """
        deployment = f"{COLLECTIONS['Deployment']}/{ACCOUNT}"
        if self.plane.admin.find(deployment) is not None:
            self.plane.admin.patch(deployment, {"spec": {"replicas": 0}})
        self.process.stop()
        for item in self._kustomize(self.manifests / "webhook"):
            for webhook in item["webhooks"]:
                webhook["clientConfig"]["service"]["namespace"] = NAMESPACE
            self.apply(item)

    def _configuration(self) -> Json:
        shipped: dict[str, Any] = yaml.safe_load(
            (self.manifests / "manager/controller_manager_config.yaml").read_text()
        )
        shipped["webhook"] |= {"host": "127.0.0.1", "port": self.webhook}
        shipped["metrics"] = {"bindAddress": "0"}
        shipped["health"] |= {"healthProbeBindAddress": f"127.0.0.1:{self.health}"}
        shipped["leaderElection"] |= {"resourceNamespace": NAMESPACE}
        shipped["certManagement"] = {"enable": False}
        if "statusServer" in shipped:
            shipped["statusServer"] |= {"port": free_port()}
        return shipped

    def _kustomize(self, folder: Path) -> list[Json]:
        argv: list[str | Path] = [self.plane.programs.program("kubectl"), "kustomize", str(folder)]
        done = subprocess.run(argv, check=True, capture_output=True, timeout=60)
        return list(documents(done.stdout.decode()))
