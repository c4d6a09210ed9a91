"""Our operator as a platform team installs it: with the shipped roles, webhooks, certificates and leader election.

In: a real control plane with our CRDs. Out: the operator, bound to its service account, in a thread; its webhooks
called by the API server over TLS with the CA that the operator itself put there. The Deployment and its Service are
left out, since the plane has no nodes to run them; the API server calls the webhooks by URL instead.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import trainwright
from trainwright.client import Client
from trainwright.operator.certificates.material import Policy
from trainwright.operator.configfile import parse
from trainwright.operator.manager import Operator
from trainwright.operator.settings import Settings
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.operators import OperatorInThread
from trainwright.testing.processes import free_port
from trainwright.testing.rest import Refused

MANIFESTS = Path(trainwright.__file__).parent / "manifests"
NAMESPACE = "kubeflow-system"
ACCOUNT = "kubeflow-trainer-controller-manager"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"

COLLECTIONS = {
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}


class Installation:
    """`with Installation(plane) as installed:`. `overlay` is a folder of `manifests/overlays`."""

    def __init__(
        self,
        plane: RealControlPlane,
        *,
        overlay: str = "progress",
        policy: Policy | None = None,
        lease_seconds: int = 30,
        feature_gates: tuple[str, ...] = (),
    ) -> None:
        self.plane = plane
        self.overlay = overlay
        self.webhook_port = free_port()
        self.progress_port = free_port()
        self.policy = policy or Policy("operator.test.svc", addresses=("127.0.0.1",))
        self.lease_seconds = lease_seconds
        self.feature_gates = {"TrainJobStatus": overlay == "progress"} | dict.fromkeys(feature_gates, True)
        self.objects: list[Json] = []
        self.operator: OperatorInThread

    def __enter__(self) -> Self:
        self.install()
        self.operator = self.run_operator()
        self.operator.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.operator.__exit__(kind, error, trace)
        finally:
            self.uninstall()

    def install(self) -> None:
        for item in self._render():
            if item["kind"] not in COLLECTIONS:
                continue
            if item["kind"].endswith("WebhookConfiguration"):
                for webhook in item["webhooks"]:
                    path = webhook["clientConfig"].pop("service")["path"]
                    webhook["clientConfig"]["url"] = f"https://127.0.0.1:{self.webhook_port}{path}"
            self.plane.admin.apply(self._path(item), item, manager="installation")
            self.objects.append(item)
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}"
        self.plane.admin.until(account, bool, what="service account")
        self.kubeconfig = self.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)

    def uninstall(self) -> None:
        for item in reversed(self.objects):
            self.plane.admin.delete_if_there(self._path(item))
        self.plane.admin.delete_if_there(f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert")

    def run_operator(self) -> OperatorInThread:
        return OperatorInThread(self.kubeconfig, make=self.make)

    def make(self, client: Client) -> Operator:
        settings = Settings(
            configuration=parse(self.configuration()),
            namespace=NAMESPACE,
            identity=f"operator-{id(client)}",
            certificates=self.policy,
            unused_revision_seconds=1.0,
        )
        return Operator(client, settings)

    def configuration(self) -> str:
        """The shipped configuration, with addresses of this machine and a lease that suits the test."""
        return f"""
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook: {{host: 127.0.0.1, port: {self.webhook_port}}}
metrics: {{bindAddress: "127.0.0.1:0"}}
health: {{healthProbeBindAddress: "127.0.0.1:0"}}
statusServer: {{host: 127.0.0.1, port: {self.progress_port}, qps: 50, burst: 50}}
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  leaseDuration: {self.lease_seconds}s
  renewDeadline: {self.lease_seconds * 3 // 4}s
  retryPeriod: 1s
controller: {{groupKindConcurrency: {{TrainJob.trainer.kubeflow.org: 5}}}}
featureGates: {json.dumps(self.feature_gates)}
"""

    @property
    def roles(self) -> list[Json]:
        """What the overlay grants to the operator."""
        objects = self._render()
        bound = {
            (item["roleRef"]["kind"], item["roleRef"]["name"])
            for item in objects
            if item["kind"].endswith("RoleBinding") and any(it["name"] == ACCOUNT for it in item["subjects"])
        }
        return [it for it in objects if (it["kind"], it["metadata"]["name"]) in bound]

    def _render(self) -> list[Json]:
        kubectl = self.plane.programs.program("kubectl")
        folder = (MANIFESTS / "overlays" / self.overlay).resolve()
        done = subprocess.run([kubectl, "kustomize", str(folder)], check=True, capture_output=True, timeout=60)
        return list(documents(done.stdout.decode()))

    def _path(self, item: Json) -> str:
        return f"{COLLECTIONS[item['kind']]}/{item['metadata']['name']}"


def refusal(plane: RealControlPlane, path: str, body: Json) -> str:
    """The message with which a create is refused."""
    try:
        plane.admin.create(path, body)
    except Refused as refused:
        return str(refused.status["message"])
    raise AssertionError(f"{path} was created and should have been refused")
