"""A real control plane for a test session: etcd, kube-apiserver and -controller-manager, JobSet, kube-scheduler, KWOK.

In: the paths of the programs (`Programs`) and a directory. Out: a running API server on loopback with RBAC, admission,
its own CA and an audit log; an admin's kubeconfig; kubeconfigs of service accounts with only the rights of their roles.
Every process ends with the context. A part that is stopped and started again has its data and its port again:

    with RealControlPlane(programs, directory) as plane:
        namespace = plane.namespace()
        plane.admin.create(f"/api/v1/namespaces/{namespace}/configmaps", {...})
        plane.parts["etcd"].stop()
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol

import yaml

from trainwright.schema.jsonobject import Json
from trainwright.testing import nodes
from trainwright.testing.certificates import Authority, KeyPair
from trainwright.testing.processes import Process, free_port
from trainwright.testing.rest import Rest

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "ttl-after-finished-controller",
)

# Users of the control plane itself: their reads do not concern any oracle, and are most of the traffic.
ADMIN = "kubernetes-admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
JOBSET = "system:jobset-controller"
KWOK = "system:kwok"

ALL_PARTS = ("kube-controller-manager", "jobset", "kube-scheduler", "kwok")


# The controllers that our own API server has too: with only these a real control plane does the same.
CLEANERS = ("garbage-collector-controller", "namespace-controller")


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Programs(Protocol):
    """The paths of the programs: `program("etcd")`, and of JobSet's YAML: `manifests("jobset-manifests")`."""

    def program(self, name: str) -> Path: ...

    def manifests(self, name: str) -> Path: ...


class RealControlPlane:
    """The control plane. `parts` other than etcd and kube-apiserver may be left out and added later, such as JobSet."""

    def __init__(
        self,
        programs: Programs,
        directory: Path,
        *,
        with_parts: Iterable[str] = ALL_PARTS,
        controllers: Iterable[str] = CONTROLLERS,
        without_admission: Iterable[str] = (),
        node_count: int = 2,
        with_audit_log: bool = True,
        audited: Json | None = None,
        feature_gates: Iterable[str] = (),
        served: Iterable[str] = (),
    ) -> None:
        self.programs = programs
        self.directory = directory
        self.with_parts = tuple(with_parts)
        self.controllers = tuple(controllers)
        # Nodes become Ready at once here, and nothing would remove the taint of a new one.
        self.without_admission = ("TaintNodesByCondition", *without_admission)
        self.node_count = node_count
        self.with_audit_log = with_audit_log
        self.audited = audited  # an audit policy; it must keep what the administrator deletes, see `audit_events`
        self.feature_gates = tuple(feature_gates)  # of Kubernetes, such as GangScheduling: they are switched on
        self.served = tuple(served)  # versions that are off by default, such as scheduling.k8s.io/v1alpha2
        self.parts: dict[str, Process] = {}
        self.audit_log = directory / "audit.log"
        self.seconds_to_ready = 0.0

    def __enter__(self) -> RealControlPlane:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Start and stop

    def start(self) -> None:
        started = time.monotonic()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.authority = Authority(self.directory / "pki")
        try:
            self._start_etcd()
            self._start_apiserver()
            if "jobset" in self.with_parts:
                self.install_jobset(wait=False)
            if "kube-controller-manager" in self.with_parts:
                self._start_controller_manager()
            if "kube-scheduler" in self.with_parts:
                self._start_scheduler()
            if "kwok" in self.with_parts:
                self._start_kwok()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        self.seconds_to_ready = time.monotonic() - started

    def stop(self) -> None:
        """Kills every part, clients before servers. The data is discarded, so they need no time to save it."""
        for part in reversed(list(self.parts.values())):
            part.stop(grace=0)

    # Access

    def kubeconfig(self, name: str, user: Json) -> Path:
        """Writes a kubeconfig for `user` (the `user` part of a kubeconfig)."""
        path = self.directory / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        ca = base64.b64encode(self.authority.certificate.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": {"server": self.server, "certificate-authority-data": ca}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": name, "namespace": "default"}}],
            "current-context": "real",
        }
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    def user_kubeconfig(self, user: str, group: str) -> Path:
        """A kubeconfig with a client certificate of that user and group, inline."""
        pair = self.authority.for_client(user, group)
        inline = {
            "client-certificate-data": base64.b64encode(pair.certificate.read_bytes()).decode(),
            "client-key-data": base64.b64encode(pair.key.read_bytes()).decode(),
        }
        return self.kubeconfig(user.replace(":", "-"), inline)

    def service_account_kubeconfig(self, namespace: str, name: str, *, seconds: int = 86400) -> Path:
        """A kubeconfig with a new token of an existing service account, which has the rights of its roles."""
        return self.kubeconfig(f"{namespace}-{name}", {"token": self.token(namespace, name, seconds=seconds)})

    def token(self, namespace: str, name: str, *, seconds: int = 86400, audiences: tuple[str, ...] = ()) -> str:
        spec: Json = {"expirationSeconds": seconds} | ({"audiences": list(audiences)} if audiences else {})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
        token: str = answer["status"]["token"]
        return token

    def namespace(self, prefix: str = "test", labels: dict[str, str] | None = None) -> str:
        """A new namespace that is ready for pods: its default service account and root CA exist."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}
        self.admin.create("/api/v1/namespaces", body)
        if self._makes_service_accounts:
            base = f"/api/v1/namespaces/{name}"
            self.admin.until(f"{base}/serviceaccounts/default", bool, what="default service account")
            self.admin.until(f"{base}/configmaps/kube-root-ca.crt", bool, what="root CA ConfigMap")
        return name

    @property
    def _makes_service_accounts(self) -> bool:
        return "kube-controller-manager" in self.with_parts and "serviceaccount-controller" in self.controllers

    # Audit log

    def audit_position(self) -> int:
        """The current end of the audit log, for `audit_events(since=…)`."""
        return self.audit_log.stat().st_size if self.audit_log.exists() else 0

    def audit_events(self, since: int = 0) -> list[Json]:
        """Audit events up to now. The log is written in batches: a marker request shows that it is up to date."""
        marker = f"marker-{secrets.token_hex(8)}"
        self.admin.delete_if_there(f"/api/v1/namespaces/default/configmaps/{marker}")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            text = self._audit_text(since)
            if marker in text:
                return [json.loads(line) for line in text.splitlines() if line.endswith("}")]
            time.sleep(0.1)
        raise AssertionError("the audit log did not catch up in 30 s")

    def _audit_text(self, since: int) -> str:
        if not self.audit_log.exists():
            return ""
        with self.audit_log.open() as log:
            log.seek(since)
            return log.read()

    # Parts

    def _part(self, name: str, *arguments: str, program: str | None = None) -> Process:
        logs = self.directory / "logs"
        logs.mkdir(exist_ok=True)
        process = Process(name, [self.programs.program(program or name), *arguments], logs / f"{name}.log")
        self.parts[name] = process
        process.start()
        return process

    def _start_etcd(self) -> None:
        port, peer = free_port(), free_port()
        self.etcd = f"http://127.0.0.1:{port}"
        etcd = self._part(
            "etcd",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.etcd}",
            f"--advertise-client-urls={self.etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        health = Rest(self.etcd, None)
        etcd.wait_until(lambda: health.raw("GET", "/health")[0] == 200, 20)

    def _start_apiserver(self) -> None:
        port = free_port()
        self.server = f"https://127.0.0.1:{port}"
        serving = self.authority.for_server("kube-apiserver")
        accounts = self.authority.signing_key("service-accounts")
        apiserver = self._part(
            "kube-apiserver",
            f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(self.without_admission)}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts.certificate}",
            f"--service-account-signing-key-file={accounts.key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--shutdown-delay-duration=0s",
            *(self._audit_arguments() if self.with_audit_log else ()),
            *self._gates(),
            *(f"--runtime-config={version}=true" for version in self.served),
        )
        self.service_account_key = accounts
        client = self.authority.for_client(ADMIN, "system:masters")
        self.admin = Rest(self.server, self.authority.certificate, client=client)
        self.admin_kubeconfig = self.user_kubeconfig(ADMIN, "system:masters")
        apiserver.wait_until(self.is_ready, 60)

    def _gates(self) -> tuple[str, ...]:
        gates = ",".join(f"{gate}=true" for gate in self.feature_gates)
        return (f"--feature-gates={gates}",) if gates else ()

    def _audit_arguments(self) -> tuple[str, ...]:
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(self.audited or audit_policy()))
        return (
            f"--audit-log-path={self.audit_log}",
            f"--audit-policy-file={policy}",
            "--audit-log-maxsize=100000",  # in MB: by default it starts a new file after 100, and we read one
            "--audit-log-mode=batch",
            "--audit-log-batch-max-wait=200ms",
            "--audit-log-batch-throttle-enable=false",
        )

    def is_ready(self) -> bool:
        return self.admin.raw("GET", "/readyz")[0] == 200

    def _start_controller_manager(self) -> None:
        self._part(
            "kube-controller-manager",
            f"--kubeconfig={self.user_kubeconfig(CONTROLLER_MANAGER, 'system:masters')}",
            f"--controllers={','.join(self.controllers)}",
            f"--service-account-private-key-file={self.service_account_key.key}",
            f"--root-ca-file={self.authority.certificate}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *self._gates(),
        )

    def _start_scheduler(self) -> None:
        configuration = self.directory / "scheduler.yaml"
        kubeconfig = self.user_kubeconfig(SCHEDULER, "system:masters")
        configuration.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
                    "leaderElection": {"leaderElect": False},
                    "podInitialBackoffSeconds": 1,
                    "podMaxBackoffSeconds": 1,
                }
            )
        )
        self._part(
            "kube-scheduler",
            f"--config={configuration}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            *self._gates(),
        )

    def _start_kwok(self) -> None:
        """KWOK in place of kubelets, including logs: every node's address is 127.0.0.1."""
        log = self.directory / "container.log"
        log.write_text(nodes.container_log())
        configuration = self.directory / "kwok.yaml"
        configuration.write_text(nodes.kwok_configuration(log))
        port = free_port()
        serving = self.authority.for_server("kwok")
        self._part(
            "kwok",
            f"--kubeconfig={self.user_kubeconfig(KWOK, 'system:masters')}",
            f"--config={configuration}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=0",
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
        )
        for number in range(self.node_count):
            self.admin.create("/api/v1/nodes", nodes.node(f"node-{number}"))

    def install_crds(self, crds: Iterable[Json]) -> None:
        """Creates missing CRDs. Returns when all can be listed, which is later than Established."""
        wanted = list(crds)
        for crd in wanted:
            if self.admin.find(f"{CRDS}/{crd['metadata']['name']}") is None:
                self.admin.create(CRDS, crd)
        for crd in wanted:
            self.admin.until(f"{CRDS}/{crd['metadata']['name']}", is_established, what="Established")
            spec = crd["spec"]
            for version in (version["name"] for version in spec["versions"] if version["served"]):
                path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
                self.parts["kube-apiserver"].wait_until(lambda path=path: self.admin.raw("GET", path)[0] == 200, 30)  # type: ignore[misc]

    def install_jobset(self, *, wait: bool = True) -> None:
        """JobSet's CRD, its webhooks (by URL, with our CA) and its controller."""
        manifests = self.programs.manifests("jobset-manifests")
        crd = next((manifests / "config/components/crd/bases").glob("*jobsets.yaml"))
        self.install_crds(documents(crd.read_text()))
        webhook, health = free_port(), free_port()
        self.jobset_health = Rest(f"http://127.0.0.1:{health}", None)
        certificates = self.directory / "jobset-certificates"
        self.authority.for_server("jobset", stem="tls", directory=certificates)
        configuration = self.directory / "jobset.yaml"
        configuration.write_text(yaml.safe_dump(_jobset_configuration(webhook, health, certificates)))
        kubeconfig = self.user_kubeconfig(JOBSET, "system:masters")
        self._part("jobset", f"--config={configuration}", f"--kubeconfig={kubeconfig}")
        for hook in yaml.safe_load_all((manifests / "config/components/webhook/manifests.yaml").read_text()):
            if hook is None:
                continue
            hook["metadata"]["name"] = f"jobset-{hook['metadata']['name']}"
            point_at(hook, f"https://127.0.0.1:{webhook}", self.authority.certificate.read_bytes())
            plural = f"{hook['kind'].lower()}s"
            self.admin.create(f"/apis/admissionregistration.k8s.io/v1/{plural}", hook)
        if wait:
            self._wait_for_jobset()

    def _wait_for_jobset(self) -> None:
        self.parts["jobset"].wait_until(lambda: self.jobset_health.raw("GET", "/readyz")[0] == 200, 60)

    def _wait_until_ready(self) -> None:
        if "jobset" in self.with_parts:
            self._wait_for_jobset()
        if self._makes_service_accounts:
            accounts = "/api/v1/namespaces/default/serviceaccounts/default"
            self.admin.until(accounts, bool, what="kube-controller-manager at work", seconds=60)
        if "kwok" in self.with_parts:
            for number in range(self.node_count):
                self.admin.until(f"/api/v1/nodes/node-{number}", _is_ready_node, what="node Ready", seconds=60)


def audit_policy() -> Json:
    """Logs the bodies of all writes but Secrets', the metadata of other requests, and no reads of the control plane."""
    own = [ADMIN, CONTROLLER_MANAGER, SCHEDULER, JOBSET, KWOK, "system:apiserver"]
    writes = ["create", "update", "patch", "delete", "deletecollection"]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": own, "verbs": ["get", "list", "watch"]},
            {"level": "None", "users": [KWOK, SCHEDULER, "system:apiserver"]},
            {
                "level": "Metadata",
                "resources": [
                    {"group": "", "resources": ["secrets", "serviceaccounts/token"]},
                    {"group": "authentication.k8s.io"},
                ],
            },
            {"level": "RequestResponse", "verbs": writes},
            {"level": "Metadata"},
        ],
    }


def point_at(hook: Json, server: str, ca: bytes) -> None:
    """The webhook configuration, calling `server` in place of its Service and trusting `ca`."""
    for webhook in hook["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"] = {"url": server + path, "caBundle": base64.b64encode(ca).decode()}


def is_established(crd: Json | None) -> bool:
    return _holds(crd, "Established")


def documents(text: str) -> Iterator[Json]:
    """The objects of a multi-document YAML text, read by libyaml if possible: without it CRDs take ten seconds."""
    for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if document:
            yield document


def _jobset_configuration(webhook: int, health: int, certificates: Path) -> Json:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(certificates)},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "clientConnection": {"qps": 500, "burst": 1000},
    }


def _is_ready_node(node: Json | None) -> bool:
    return _holds(node, "Ready")


def _holds(item: Json | None, kind: str) -> bool:
    conditions = (item or {}).get("status", {}).get("conditions") or []
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)


__all__ = ["ALL_PARTS", "KeyPair", "Programs", "RealControlPlane", "documents", "is_established", "point_at"]
