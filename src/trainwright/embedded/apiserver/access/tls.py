"""Certificates and secrets of one directory: made once, kept, and only readable by their owner.

ca.crt ca.key            the cluster's own authority
apiserver.crt .key       what the server shows
kubeconfig               CA and token inline, for kubectl and everything else
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import secrets
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from trainwright.api.keyusage import key_usage
from trainwright.clock import Clock

SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
SERVER_ADDRESSES = ("127.0.0.1", "::1")
VALID = datetime.timedelta(days=3650)
RENEW_BEFORE = datetime.timedelta(days=30)


class Certificate(NamedTuple):
    cert: Path
    key: Path


def write_private(path: Path, text: str | bytes) -> None:
    """Never readable by others, not even for a moment, and never half-written."""
    data = text.encode() if isinstance(text, str) else text
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)  # of a writer that was killed; a link that somebody planted goes as well
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(path)


class Authority:
    """The CA of one directory. `cryptography` is imported only when something has to be made: it costs 8 MB."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self.directory = directory
        self._clock = clock
        self.cert = directory / "ca.crt"
        self.key = directory / "ca.key"

    def ensure(self) -> None:
        if self.cert.exists() and self.key.exists():
            return
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"trainwright-ca-{secrets.token_hex(4)}")])
        now = self._now()
        public = key.public_key()
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        cert = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(**key_usage(signs=True)), critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(self.key, _key_pem(key))
        write_private(self.cert, _cert_pem(cert))

    def _now(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self._clock.wall(), datetime.UTC)

    def issue(self, name: str, hosts: tuple[str, ...]) -> Certificate:
        """A serving certificate for these names and addresses, kept as `<name>.crt` and `<name>.key`."""
        found = Certificate(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        if found.cert.exists() and found.key.exists() and _still_good(found.cert, hosts, self._now()):
            return found
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        ca_cert = x509.load_pem_x509_certificate(self.cert.read_bytes())
        ca_key: Any = serialization.load_pem_private_key(self.key.read_bytes(), None)
        key = ec.generate_private_key(ec.SECP256R1())
        now = self._now()
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        cert = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])]))
            .issuer_name(ca_cert.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=825))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(**key_usage(signs=False)), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(authority, critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        write_private(found.key, _key_pem(key))
        write_private(found.cert, _cert_pem(cert))
        (self.directory / f"{name}.hosts").write_text(
            "\n".join((*hosts, (now + datetime.timedelta(days=825)).isoformat())) + "\n"
        )
        return found


def _still_good(cert: Path, hosts: tuple[str, ...], now: datetime.datetime) -> bool:
    """Whether it covers these hosts and is not about to end; read from a note beside it, not parsed."""
    try:
        *covered, end = cert.with_suffix(".hosts").read_text().split()
        left = datetime.datetime.fromisoformat(end) - now
    except (OSError, ValueError):
        return False
    return set(hosts) <= set(covered) and left > RENEW_BEFORE


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem


def _cert_pem(cert: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    pem: bytes = cert.public_bytes(serialization.Encoding.PEM)
    return pem


def server_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.cert, certificate.key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def write_kubeconfig(path: Path, url: str, ca: Path, token: str) -> None:
    """Written as JSON, which every reader of YAML takes."""
    import json

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "trainwright",
        "clusters": [
            {
                "name": "trainwright",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": "trainwright-admin", "user": {"token": token}}],
        "contexts": [
            {
                "name": "trainwright",
                "context": {"cluster": "trainwright", "user": "trainwright-admin", "namespace": "default"},
            }
        ],
    }
    write_private(path, json.dumps(config, indent=2) + "\n")
