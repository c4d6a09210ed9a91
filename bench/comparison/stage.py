"""One contender on a control plane of its own, with a fresh etcd: installed, running, quiet, ready to be loaded.

with Stage(OURS, directory) as stage:
    times = stage.load(Burst(**stage.where, count=1000))
    stage.wait_until_quiet()
"""

from __future__ import annotations

import base64
import http.client
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import yaml

from comparison import vitals, workload
from comparison.contenders import (
    ACCOUNT,
    LEASE,
    NAMESPACE,
    OURS,
    SERVICE,
    Contender,
    Ports,
    certificate_directories,
)
from comparison.orders import Orders, Times
from comparison.programs import PROGRAMS, ROOT
from comparison.requests import Counts, count, policy
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents
from trainwright.testing.processes import Process, free_port
from trainwright.testing.rest import Refused, Rest

START_SECONDS = 120.0
STOP_SECONDS = 30.0
QUIET_WITHIN = 1800.0
LOOK_SECONDS = 0.02

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
COLLECTIONS = {
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "Role": f"{RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "MutatingWebhookConfiguration": f"{ADMISSION}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{ADMISSION}/validatingwebhookconfigurations",
}
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
VALIDATING_PATH = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"

RECONCILES = re.compile(
    r'^controller_runtime_reconcile_total\{[^}]*controller="trainjob_controller"[^}]*\} (\S+)', re.M
)


class Stage:
    """`parts` of the control plane beyond etcd and kube-apiserver. Without `contender` nobody is at work."""

    def __init__(self, contender: Contender | None, directory: Path, *, parts: Iterable[str] = ()) -> None:
        self.contender = contender
        self.directory = directory
        self.plane = RealControlPlane(PROGRAMS, directory / "plane", with_parts=parts, audited=policy())
        self.ports = Ports(free_port(), free_port(), free_port(), free_port())
        self.namespace = ""
        self.operator: Process | None = None

    def __enter__(self) -> Stage:
        self.plane.start()
        try:
            self._install_job_set_crd()
            self.plane.admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            self._install(self.contender)
            self.namespace = self.plane.namespace("bench")
            if self.operator is not None:
                self.wait_until_quiet()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.operator is not None:
            self.operator.stop(grace=0)
        self.plane.stop()

    # -- setting up -----------------------------------------------------------------------------------------------

    def _install_job_set_crd(self) -> None:
        folder = PROGRAMS.manifests("jobset-manifests") / "config/components/crd/bases"
        self.plane.install_crds(documents(next(folder.glob("*jobsets.yaml")).read_text()))

    def _install(self, contender: Contender | None) -> None:
        if contender is None:
            self.plane.install_crds(OURS.crds())
        else:
            self.plane.install_crds(contender.crds())
            objects = [service(), *contender.objects()]
            for item in objects:
                if item["kind"] in COLLECTIONS:
                    self._reach_by_service(item, contender)
                    self.plane.admin.create(COLLECTIONS[item["kind"]], item)
            self.operator = self._process(contender)
            self._start()
        self._create_runtime()

    def _reach_by_service(self, item: Json, contender: Contender) -> None:
        """Has the API server call the webhooks at our port, and trust the authority of certificates that we issued."""
        for webhook in item.get("webhooks", []):
            webhook["clientConfig"]["service"] |= {"name": SERVICE, "namespace": NAMESPACE, "port": self.ports.webhook}
            if not contender.issues_certificates:
                ca = self.plane.authority.certificate.read_bytes()
                webhook["clientConfig"]["caBundle"] = base64.b64encode(ca).decode()

    def _create_runtime(self) -> None:
        """Refused until the API server calls the webhooks and trusts them; then everything is in place."""
        runtime = workload.runtime(PROGRAMS.manifests("trainer-manifests"))
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self.plane.admin.create(RUNTIMES, runtime)
            except Refused as refused:
                if time.monotonic() > end or "failed calling webhook" not in str(refused):
                    raise
                time.sleep(LOOK_SECONDS)
            else:
                return

    def _process(self, contender: Contender) -> Process:
        certificates = self.directory / "certificates"
        self.plane.authority.for_server(f"{SERVICE}.{NAMESPACE}.svc", stem="tls", directory=certificates)
        scratch = self.directory / "scratch"
        for link, target in certificate_directories(scratch, certificates).items():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        configuration = self.directory / "operator.yaml"
        configuration.write_text(yaml.safe_dump(contender.configuration(self.ports, certificates)))
        kubeconfig = self.plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        return Process(
            contender.name,
            contender.command(configuration, kubeconfig),
            self.directory / "operator.log",
            env={"TMPDIR": str(scratch)},
        )

    def _start(self) -> None:
        assert self.operator is not None
        health = Rest(f"http://127.0.0.1:{self.ports.health}", None)
        self.operator.start()
        self.operator.wait_until(lambda: health.raw("GET", "/readyz")[0] == 200, START_SECONDS)

    # -- at work --------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self.operator is not None, "nobody is at work on this stage"
        return self.operator.pid

    @property
    def where(self) -> dict[str, Any]:
        """What every order to the load generator begins with."""
        return {"kubeconfig": str(self.plane.admin_kubeconfig), "namespace": self.namespace}

    @property
    def webhooks(self) -> str:
        return f"https://127.0.0.1:{self.ports.webhook}"

    def load(self, order: Orders) -> Times:
        """Runs the load generator to its end; its traceback is the error's text when it fails."""
        command = [sys.executable, "-m", "comparison.load", msgspec.json.encode(order).decode()]
        done = subprocess.run(command, cwd=ROOT / "bench", capture_output=True, check=False)
        if done.returncode != 0:
            tail = self.operator.tail(8) if self.operator is not None else ""
            raise RuntimeError(f"the load generator failed:\n{done.stderr.decode()}\noperator's last lines:\n{tail}")
        return msgspec.json.decode(done.stdout, type=Times)

    def wait_until_quiet(self) -> None:
        vitals.wait_until_quiet(self.pid, within=QUIET_WITHIN)

    def requests(self, since: int, jobs: Sequence[str] = ()) -> Counts:
        return count(self.plane.audit_events(since), jobs)

    def restart(self) -> tuple[float, bool]:
        """Ends the operator as a Deployment does and starts it again.

        Returns the seconds from its start until its metrics count a reconcile of a TrainJob, and whether it had given
        up its lease. A lease that was left behind is removed: waiting for its end would hide everything else.
        """
        assert self.operator is not None
        self.operator.stop(grace=STOP_SECONDS)
        lease = self.plane.admin.find(f"{LEASES}/{LEASE}")
        released = lease is None or not lease["spec"].get("holderIdentity")
        self.plane.admin.delete_if_there(f"{LEASES}/{LEASE}")
        began = time.monotonic()
        self.operator.start()
        end = began + QUIET_WITHIN
        while not self.reconciles():
            assert self.operator.is_alive(), self.operator.tail()
            assert time.monotonic() < end, "no reconcile was counted after a restart"
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - began, released

    def reconciles(self) -> float:
        """Reconciles of TrainJobs, as the operator's metrics count them; 0 while nobody answers."""
        insecure = ssl._create_unverified_context()  # noqa: S323 - loopback, and a certificate made a moment ago
        connection = http.client.HTTPSConnection("127.0.0.1", self.ports.metrics, timeout=5, context=insecure)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except OSError:
            return 0.0
        finally:
            connection.close()
        return sum(float(figure) for figure in RECONCILES.findall(text))


def service() -> Json:
    """The operator's Service, led to this machine: the API server takes an external name as it is."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
    }


def load_average() -> float:
    return os.getloadavg()[0]
