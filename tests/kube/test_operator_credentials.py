"""Every kind of credential that kubectl can use works for our client, against a real API server."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.api.resources import NAMESPACES
from trainwright.client import Client, ConfigError, Unreachable, kubeconfig
from trainwright.client.errors import Unauthorized
from trainwright.testing.controlplane import RealControlPlane

ADMINS = "system:masters"


@pytest.fixture(scope="module")
def token(plane: RealControlPlane) -> str:
    """A service account that may list namespaces."""
    admin = plane.admin
    namespace = plane.namespace("who")
    admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "reader"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    admin.create(f"{rbac}/clusterroles", {"metadata": {"name": namespace}, "rules": rules})
    admin.create(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        },
    )
    return plane.token(namespace, "reader")


def config(plane: RealControlPlane, path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    ca = base64.b64encode(plane.authority.certificate.read_bytes()).decode()
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": plane.server, "certificate-authority-data": ca, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(body))
    return path


async def lists_namespaces(path: Path) -> bool:
    async with Client.to(kubeconfig.load(path)) as client:
        return bool((await client.list(NAMESPACES)).items)


async def test_a_token(plane: RealControlPlane, token: str, tmp_path: Path) -> None:
    assert await lists_namespaces(config(plane, tmp_path / "k", {"token": token}))


async def test_a_token_file_that_is_renewed_after_the_old_one_was_refused(
    plane: RealControlPlane, token: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("expired.or.forged")
    async with Client.to(kubeconfig.load(config(plane, tmp_path / "k", {"tokenFile": "token"}))) as client:
        with pytest.raises(Unauthorized):
            await client.list(NAMESPACES)
        file.write_text(token)
        assert (await client.list(NAMESPACES)).items


async def test_client_certificates_inline_and_as_files(plane: RealControlPlane, tmp_path: Path) -> None:
    pair = plane.authority.for_client("somebody", ADMINS)
    files = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    assert await lists_namespaces(config(plane, tmp_path / "files", files))
    inline = {f"{name}-data": base64.b64encode(Path(path).read_bytes()).decode() for name, path in files.items()}
    assert await lists_namespaces(config(plane, tmp_path / "inline", inline))


@pytest.mark.parametrize("kind", ["token", "certificate"])
async def test_an_exec_plugin(plane: RealControlPlane, token: str, tmp_path: Path, kind: str) -> None:
    pair = plane.authority.for_client("plugged", ADMINS)
    status = (
        {"token": token}
        if kind == "token"
        else {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    )
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "credential.json").write_text(json.dumps(credential))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [str(tmp_path / "credential.json")],
        "interactiveMode": "Never",
    }
    assert await lists_namespaces(config(plane, tmp_path / "k", {"exec": plugin}))


async def test_the_servers_name_in_its_certificate_is_checked_and_can_be_given(
    plane: RealControlPlane, token: str, tmp_path: Path
) -> None:
    user = {"token": token}
    assert await lists_namespaces(config(plane, tmp_path / "good", user, **{"tls-server-name": "localhost"}))
    with pytest.raises(Unreachable, match="certificate"):
        await lists_namespaces(config(plane, tmp_path / "bad", user, **{"tls-server-name": "other.example"}))


async def test_a_server_of_another_ca_is_not_talked_to_unless_asked(
    plane: RealControlPlane, token: str, tmp_path: Path
) -> None:
    user = {"token": token}
    other = base64.b64encode(plane.authority.for_client("not-a-ca", ADMINS).certificate.read_bytes()).decode()
    with pytest.raises((Unreachable, ConfigError)):
        await lists_namespaces(config(plane, tmp_path / "other", user, **{"certificate-authority-data": other}))
    careless = {"certificate-authority-data": "", "insecure-skip-tls-verify": True}
    assert await lists_namespaces(config(plane, tmp_path / "careless", user, **careless))


class ConnectProxy:
    """An HTTP proxy that supports CONNECT and counts the tunnels."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connects: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            head = client.recv(65536).decode()
            target = head.split()[1]
            self.connects.append(target)
            host, _, port = target.rpartition(":")
            server = socket.create_connection((host, int(port)))
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    it = ConnectProxy()
    yield it
    it.close()


async def test_a_proxy(plane: RealControlPlane, token: str, tmp_path: Path, proxy: ConnectProxy) -> None:
    assert await lists_namespaces(config(plane, tmp_path / "k", {"token": token}, **{"proxy-url": proxy.url}))
    assert proxy.connects == [plane.server.removeprefix("https://")]


async def test_what_the_kubelet_mounts(plane: RealControlPlane, token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_bytes(plane.authority.certificate.read_bytes())
    host, _, port = plane.server.removeprefix("https://").partition(":")
    connection = kubeconfig.in_cluster(host=host, port=port, service_account=tmp_path)
    async with Client.to(connection) as client:
        assert (await client.list(NAMESPACES)).items
