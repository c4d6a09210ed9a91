"""Every form of kubeconfig and credential, from files as users have them."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainwright.client import ConfigError, kubeconfig
from trainwright.client.credentials import Credential, ExecPlugin, TokenFile


def write(path: Path, **changes: Any) -> Path:
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://one.example:6443/"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }
    path.write_text(yaml.safe_dump({**config, **changes}))
    return path


async def test_a_token_is_sent_as_bearer_and_the_namespace_is_the_contexts(tmp_path: Path) -> None:
    connection = kubeconfig.load(write(tmp_path / "k"))
    assert connection.server == "https://one.example:6443"
    assert connection.namespace == "team"
    assert await connection.credentials.current() == Credential("Bearer secret")


async def test_another_context_can_be_named(tmp_path: Path) -> None:
    contexts = [{"name": "there", "context": {"cluster": "c"}}]
    connection = kubeconfig.load(write(tmp_path / "k", contexts=contexts), context="there")
    assert await connection.credentials.current() == Credential()


def test_an_unknown_context_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"contexts has no 'nope'; there are: here"):
        kubeconfig.load(write(tmp_path / "k"), context="nope")


async def test_of_several_files_the_first_that_has_a_name_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "first", users=[{"name": "u", "user": {"token": "first"}}], clusters=[])
    second = write(tmp_path / "second", users=[{"name": "u", "user": {"token": "second"}}])
    connection = kubeconfig.load_merged([tmp_path / "missing", first, second])
    assert (await connection.credentials.current()).authorization == "Bearer first"
    assert connection.server == "https://one.example:6443"


def test_no_file_at_all_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        kubeconfig.load(tmp_path / "missing")


@pytest.mark.parametrize("text", ["[1, 2]", "a: b: c", "clusters: [{}]"])
def test_what_is_no_kubeconfig_is_said_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(ConfigError, match=str(path)):
        kubeconfig.load(path)


async def test_certificates_are_read_inline_or_from_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"CA")
    (tmp_path / "key.pem").write_bytes(b"KEY")
    path = write(
        tmp_path / "k",
        clusters=[{"name": "c", "cluster": {"server": "https://x", "certificate-authority": "ca.pem"}}],
        users=[
            {
                "name": "u",
                "user": {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key": "key.pem"},
            }
        ],
    )
    connection = kubeconfig.load(path)
    assert connection.ca == b"CA"
    assert await connection.credentials.current() == Credential(None, b"CERT", b"KEY")


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "k", users=[{"name": "u", "user": {"client-certificate-data": "QQ=="}}])
    with pytest.raises(ConfigError, match="needed together"):
        kubeconfig.load(path)


def test_proxy_and_server_name_are_kept(tmp_path: Path) -> None:
    cluster = {"server": "https://x", "proxy-url": "http://proxy:1", "tls-server-name": "api.internal"}
    connection = kubeconfig.load(write(tmp_path / "k", clusters=[{"name": "c", "cluster": cluster}]))
    assert (connection.proxy_url, connection.tls_server_name) == ("http://proxy:1", "api.internal")


def test_a_ca_and_no_verification_exclude_each_other(tmp_path: Path) -> None:
    cluster = {"server": "https://x", "insecure-skip-tls-verify": True, "certificate-authority-data": "QQ=="}
    with pytest.raises(ConfigError, match="exclude each other"):
        kubeconfig.load(write(tmp_path / "k", clusters=[{"name": "c", "cluster": cluster}]))


async def test_basic_authentication_is_encoded(tmp_path: Path) -> None:
    path = write(tmp_path / "k", users=[{"name": "u", "user": {"username": "a", "password": "b"}}])
    assert (await kubeconfig.load(path).credentials.current()).authorization == "Basic YTpi"


def test_the_removed_auth_providers_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "k", users=[{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}])
    with pytest.raises(ConfigError, match="use an exec plugin"):
        kubeconfig.load(path)


async def test_a_token_file_is_read_again_after_a_401_and_not_for_every_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = TokenFile(file)
    assert (await credentials.current()).authorization == "Bearer one"
    file.write_text("two\n")
    assert (await credentials.current()).authorization == "Bearer one"
    assert credentials.forget()
    assert (await credentials.current()).authorization == "Bearer two"


async def test_a_missing_or_empty_token_file_is_told_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(ConfigError, match=str(file)):
        await TokenFile(file).current()
    file.write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        await TokenFile(file).current()


async def test_in_a_cluster_what_the_kubelet_mounts_is_used(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"CA")
    (tmp_path / "token").write_text("mounted")
    (tmp_path / "namespace").write_text("kubeflow-system\n")
    connection = kubeconfig.in_cluster(host="fd00::1", port="443", service_account=tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert (connection.ca, connection.namespace) == (b"CA", "kubeflow-system")
    assert (await connection.credentials.current()).authorization == "Bearer mounted"


def test_outside_a_cluster_that_is_said() -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST"):
        kubeconfig.in_cluster(host=None, port=None)


V1 = "client.authentication.k8s.io/v1"


def plugin(tmp_path: Path, script: str, now: Any = None, **spec: Any) -> ExecPlugin:
    program = tmp_path / "plugin.sh"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    settings = {"apiVersion": V1, "command": "./plugin.sh", **spec}
    clock = {"now": now} if now else {}
    return ExecPlugin(settings, directory=tmp_path, cluster={"server": "https://x"}, **clock)


def prints(status: dict[str, Any], version: str = V1) -> str:
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"echo run >> runs\ncat <<'END'\n{json.dumps(credential)}\nEND\n"


async def test_an_exec_plugins_token_is_kept_until_it_is_about_to_expire(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    time = 1_767_225_600.0  # 2026-01-01
    it = plugin(tmp_path, prints({"token": "t", "expirationTimestamp": "2026-01-01T01:00:00Z"}), now=lambda: time)
    assert (await it.current()).authorization == "Bearer t"
    time += 3500
    await it.current()
    assert (tmp_path / "runs").read_text().count("run") == 1
    time += 95
    await it.current()
    assert (tmp_path / "runs").read_text().count("run") == 2


async def test_an_exec_plugin_may_give_a_client_certificate(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    it = plugin(tmp_path, prints({"clientCertificateData": "CERT", "clientKeyData": "KEY"}))
    assert await it.current() == Credential(None, b"CERT", b"KEY")


async def test_an_exec_plugin_is_told_of_the_cluster_and_gets_its_environment(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    it = plugin(
        tmp_path,
        'echo "$KUBERNETES_EXEC_INFO" > info; echo "$COLOUR" > colour\n' + prints({"token": "t"}),
        provideClusterInfo=True,
        env=[{"name": "COLOUR", "value": "red"}],
    )
    await it.current()
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"]["cluster"] == {"server": "https://x"}
    assert (tmp_path / "colour").read_text() == "red\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo boom >&2; exit 3", "exit code 3: boom"),
        ("echo not json", "did not print an ExecCredential"),
        (prints({}), "neither a token nor a client certificate"),
        (prints({"token": "t"}, "client.authentication.k8s.io/v1beta1"), "the kubeconfig asks for"),
        (prints({"token": "t", "expirationTimestamp": "soon"}), "is not a time"),
    ],
)
async def test_what_is_wrong_with_an_exec_plugin_is_said(
    tmp_path: Path, monkeypatch: Any, script: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=why):
        await plugin(tmp_path, script).current()


async def test_an_exec_plugin_that_is_not_installed_shows_its_hint(tmp_path: Path) -> None:
    it = ExecPlugin(
        {"apiVersion": V1, "command": "no-such-program-here", "installHint": "install it with brew"},
        directory=tmp_path,
        cluster={},
    )
    with pytest.raises(ConfigError, match="install it with brew"):
        await it.current()


def test_the_kubeconfig_is_not_read_from_the_environment(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "other")))
    with pytest.raises(ConfigError):
        kubeconfig.load(tmp_path / os.path.basename("asked-for"))
