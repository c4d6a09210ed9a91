"""The embedded control plane with the interface of the real one, so that the same tests run on our own API server.

In: a directory. Out: `trainwright up --api-only` as a process, our workload controllers on it in a thread, and fake
kubelets. The requests and answers of the operators in this process take the place of an audit log. Features that our
server does not have (etcd, client certificates) raise `NotOnEmbedded`, which the suite lists.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from trainwright.client import Client
from trainwright.client.kubeconfig import load
from trainwright.controlloop import Manager
from trainwright.embedded.workloads.controllers import workload_controllers
from trainwright.schema.jsonobject import Json
from trainwright.testing import clientaudit
from trainwright.testing.controlplane import CRDS, Programs, is_established
from trainwright.testing.kubelets import Kubelets
from trainwright.testing.operators import OperatorInThread
from trainwright.testing.rest import Refused, Rest

COMMAND = [sys.executable, "-m", "trainwright.cli.main"]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MASTERS = "test-masters"


class NotOnEmbedded(Exception):
    """The embedded control plane does not have this feature; the message names it."""


class EmbeddedControlPlane:
    """The attributes and methods of `RealControlPlane` that tests use."""

    def __init__(self, programs: Programs, directory: Path) -> None:
        self.programs = programs  # kubectl, for tests that build manifests with it
        self.directory = directory
        self.state = directory / "state"
        self.admin_kubeconfig = self.state / "kubeconfig"
        self.seconds_to_ready = 0.0
        self.parts: dict[str, Any] = _Parts()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run_workloads, name="workload controllers", daemon=True)

    def __enter__(self) -> EmbeddedControlPlane:
        started = time.monotonic()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._command("up", "--detach", "--api-only")
        self.admin = Rest.from_kubeconfig(self.admin_kubeconfig, self.directory / "scratch")
        self._cluster = yaml.safe_load(self.admin_kubeconfig.read_text())["clusters"][0]["cluster"]
        self.server = str(self._cluster["server"])
        self.authority = _Authority(self.directory / "ca.crt", self._cluster["certificate-authority-data"])
        self._make_masters()
        self._thread.start()
        self._kubelets = Kubelets(self.admin)
        self._kubelets.__enter__()
        self.seconds_to_ready = time.monotonic() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kubelets.__exit__(kind, error, trace)
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(20)
        self._command("down", "--force")

    def is_ready(self) -> bool:
        return self.admin.raw("GET", "/readyz")[0] == 200

    # Access

    def kubeconfig(self, name: str, user: Json) -> Path:
        path = self.directory / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": self._cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": name}}],
            "current-context": "embedded",
        }
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    def user_kubeconfig(self, user: str, group: str) -> Path:
        """A service account with the same rights in place of the user: our server has no client certificates."""
        if group != "system:masters":
            raise NotOnEmbedded(f"no client certificates: user {user} of group {group} cannot be made")
        name = user.replace(":", "-")
        account = {"metadata": {"name": name, "namespace": "default"}}
        try:
            self.admin.create("/api/v1/namespaces/default/serviceaccounts", account)
        except Refused as refused:
            if refused.code != 409:
                raise
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"test-{name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": MASTERS},
            "subjects": [subject],
        }
        self.admin.apply(f"{RBAC}/clusterrolebindings/test-{name}", binding)
        return self.service_account_kubeconfig("default", name)

    def service_account_kubeconfig(self, namespace: str, name: str, *, seconds: int = 86400) -> Path:
        return self.kubeconfig(f"{namespace}-{name}", {"token": self.token(namespace, name, seconds=seconds)})

    def token(self, namespace: str, name: str, *, seconds: int = 86400, audiences: tuple[str, ...] = ()) -> str:
        spec: Json = {"expirationSeconds": seconds} | ({"audiences": list(audiences)} if audiences else {})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
        return str(answer["status"]["token"])

    def namespace(self, prefix: str = "test", labels: dict[str, str] | None = None) -> str:
        name = f"{prefix}-{secrets.token_hex(4)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}
        self.admin.create("/api/v1/namespaces", body)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        self.admin.until(account, bool, what="default service account")
        return name

    def install_crds(self, crds: Iterable[Json]) -> None:
        wanted = list(crds)
        for crd in wanted:
            if self.admin.find(f"{CRDS}/{crd['metadata']['name']}") is None:
                self.admin.create(CRDS, crd)
        for crd in wanted:
            self.admin.until(f"{CRDS}/{crd['metadata']['name']}", is_established, what="Established")

    # Missing features

    def audit_position(self) -> int:
        """The current time: requests of several operators have no common order."""
        return int(time.time())

    def audit_events(self, since: int = 0) -> list[Json]:
        """The requests and answers of the operators in this process: our server has no audit log."""
        return [
            event
            for path, transport in OperatorInThread.transports
            for event in clientaudit.events(path, transport, since)
        ]

    @property
    def service_account_key(self) -> Any:
        raise NotOnEmbedded("the key that signs service account tokens is not handed out")

    # Parts

    def _command(self, name: str, *arguments: str) -> None:
        command = [*COMMAND, name, *arguments, "--dir", str(self.state)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _make_masters(self) -> None:
        rules = [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules}
        self.admin.apply(f"{RBAC}/clusterroles/{MASTERS}", {**role, "metadata": {"name": MASTERS}})

    def _run_workloads(self) -> None:
        async def work() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            async with Client.to(load(self.admin_kubeconfig)) as client:
                await Manager(client, workload_controllers(client)).run()

        try:
            asyncio.run(work())
        except asyncio.CancelledError:
            pass


class _Authority:
    """The CA that signed the server's certificate, without its key."""

    def __init__(self, certificate: Path, data: str) -> None:
        self.certificate = certificate
        certificate.write_bytes(base64.b64decode(data))

    def for_client(self, user: str, group: str) -> Any:
        raise NotOnEmbedded(f"no client certificates: user {user} of group {group} cannot be made")


class _Parts(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise NotOnEmbedded(f"there is no {name} here")
