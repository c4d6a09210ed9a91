"""The whole local cluster from outside: every listener speaks modern TLS only (X6), and no secret gets where it does
not belong (X7).

Canaries are a Secret's value that a pod has as a variable, an MPI job's private key, the administrator's token, the
token that a pod mounts, and the keys of all certificates. They are looked for in logs, events, statuses, metrics, what
commands print and what runs leave on disk.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import CommandLine, command_line, plain_job
from trainwright.testing.rest import Rest
from waiting import eventually

SECRET = "canary-4f1c0d2e9b"  # it is there to be looked for
WEAK = "RC4:3DES:AES128-SHA:AES256-SHA:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA"
LEGACY = (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1)
MODERN = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # where pods find it
TRAINING = f"""
import os, pathlib, sys
assert len(os.environ["CANARY"]) == {len(SECRET)}
token = pathlib.Path("{TOKEN_FILE}")
pathlib.Path(sys.argv[1]).write_text(token.read_text() if token.exists() else "")
print("trained")
raise SystemExit("failed as told")
"""
MPI = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: ssh}
spec:
  suspend: true
  runtimeRef: {name: mpi-distributed}
  trainer: {numNodes: 2}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    directory = tmp_path_factory.mktemp("hygiene")
    with command_line(directory / "cluster") as line:
        line("up", "--detach", env={"TRAINWRIGHT_LOG_LEVEL": "debug"})
        yield line


@pytest.fixture(scope="module")
def rest(cluster: CommandLine) -> Rest:
    return Rest.from_kubeconfig(cluster.kubeconfig, cluster.directory.parent / "scratch")


def listeners(pid: int) -> set[int]:
    """The TCP ports that a process and its children listen on."""
    sockets = set()
    for process in [str(pid), *_children(pid)]:
        for entry in Path(f"/proc/{process}/fd").iterdir():
            try:
                sockets.add(os.readlink(entry))
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            cells = row.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                found.add(int(cells[1].rpartition(":")[2], 16))
    return found


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def handshake(port: int, version: ssl.TLSVersion, ciphers: str = "ALL:@SECLEVEL=0") -> str | None:
    """The cipher that was agreed upon; None when the listener refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # what it offers is asked for here, not who it is
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the old versions are asked for on purpose
        context.minimum_version = version
        context.maximum_version = version
    context.set_ciphers(ciphers)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            with context.wrap_socket(plain) as secure:
                agreed = secure.cipher()
                return agreed[0] if agreed else None
    except (ssl.SSLError, ConnectionResetError):
        return None


def speaks_tls(port: int) -> bool:
    return any(handshake(port, version) for version in MODERN)


def test_every_listener_speaks_tls_1_2_or_newer_and_no_weak_cipher(cluster: CommandLine) -> None:
    ports = listeners(cluster.pid)
    assert len(ports) >= 4, "the API server, the webhooks, the progress server, the node"
    encrypted = {port for port in ports if speaks_tls(port)}
    assert len(encrypted) >= 4
    for port in encrypted:
        assert handshake(port, ssl.TLSVersion.TLSv1_3), f"{port} does not offer TLS 1.3"
        for version in LEGACY:
            assert handshake(port, version) is None, f"{port} speaks {version.name}"
        assert handshake(port, ssl.TLSVersion.TLSv1_2, f"{WEAK}:@SECLEVEL=0") is None, f"{port} takes a weak cipher"
    for port in ports - encrypted:
        assert is_plain_and_harmless(port), f"{port} speaks no TLS and is neither metrics nor health"


def is_plain_and_harmless(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        plain.sendall(b"GET /apis HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return plain.recv(64).startswith((b"HTTP/1.1 404", b"HTTP/1.1 400", b"HTTP/1.1 403"))


def job(name: str, where: Path) -> str:
    """A TrainJob with the Secret's value as a variable, which tells its token to a file."""
    body = plain_job(name, TRAINING.strip())
    reference = "{secretKeyRef: {name: canary, key: key}}"
    env = f"    env:\n      - {{name: CANARY, valueFrom: {reference}}}\n"
    return (
        body.replace("    command: [python3, -u, -c]\n", env + "    command: [python3, -u, -c]\n")
        + f"      - {where}\n"
    )


def test_no_secret_is_in_logs_events_statuses_metrics_or_records(cluster: CommandLine, rest: Rest) -> None:
    scratch = cluster.directory.parent
    secret = {"metadata": {"name": "canary"}, "stringData": {"key": SECRET}}
    rest.create("/api/v1/namespaces/default/secrets", secret)
    (scratch / "bad.yaml").write_text(job("bad", scratch / "token"))
    cluster("run", str(scratch / "bad.yaml"), code=1)  # what fails is told of the most
    (scratch / "ssh.yaml").write_text(MPI)
    cluster("run", str(scratch / "ssh.yaml"), "--detach")
    ssh = rest.until("/api/v1/namespaces/default/secrets/ssh-mpi-ssh-auth", bool, what="the job's key")
    assert ssh is not None
    private = base64.b64decode(ssh["data"]["ssh-privatekey"]).decode()
    canaries = {
        "the Secret's value": SECRET,
        "the MPI job's private key": private.splitlines()[2],
        "the administrator's token": re.findall(r'token"?: "?([^"\s]+)', cluster.kubeconfig.read_text())[0],
        **({"the token of a pod": text} if (text := read(scratch / "token")) else {}),
        **{str(file): key_line(file) for file in cluster.directory.glob("*.key")},
    }
    assert len(canaries) >= 4, canaries.keys()
    for place, text in places(cluster, rest):
        for what, canary in canaries.items():
            assert canary not in text, f"{what} is in {place}"
            assert base64.b64encode(canary.encode()).decode() not in text, f"{what} is in {place}, encoded"


def read(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def key_line(file: Path) -> str:
    """A line of a private key that is nothing but key."""
    return file.read_text().splitlines()[1]


def places(cluster: CommandLine, rest: Rest) -> Iterator[tuple[str, str]]:
    """Where people look, and what they see there."""
    for name in ("bad", "ssh"):
        yield f"describe {name}", cluster("describe", name)
        yield f"why {name}", cluster("why", name, code=None)
        yield f"events of {name}", cluster("events", name)
    yield "logs bad", cluster("logs", "bad")
    for path in (
        "/api/v1/events",
        "/api/v1/pods",
        "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        "/apis/batch/v1/jobs",
        "/api/v1/configmaps",
        "/apis/apps/v1/controllerrevisions",
    ):
        yield path, rest.raw("GET", path)[1].decode()
    yield "the API server's metrics", rest.raw("GET", "/metrics")[1].decode()
    yield "runs", cluster("runs")
    eventually("there is a log", lambda: list(cluster.directory.glob("*.log")))
    for file in [*cluster.directory.glob("*.log"), *cluster.directory.glob("runs/**/*")]:
        if file.is_file() and file.stat().st_size < 4_000_000:
            yield str(file), file.read_text(errors="replace")
