"""A certificate authority for one test run, for kube-apiserver, its clients and webhooks.

In: names. Out: PEM files in a directory of mode 0700. Keys are ECDSA P-256: RSA keys would take a second to make.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class KeyPair:
    certificate: Path
    key: Path


class Authority:
    """Signs certificates for servers on loopback and for clients (common name = user, organisation = group)."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trainwright-test-ca")])
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def for_server(self, name: str, *, stem: str | None = None, directory: Path | None = None) -> KeyPair:
        """A server certificate for 127.0.0.1, localhost and the names of the `kubernetes` service."""
        names: list[x509.GeneralName] = [x509.DNSName(dns) for dns in ("localhost", "kubernetes.default.svc", name)]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._issue(subject, names, directory or self.directory, stem or name)

    def for_client(self, user: str, group: str) -> KeyPair:
        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, user), x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)]
        )
        return self._issue(subject, [], self.directory, user.replace(":", "-"))

    def signing_key(self, stem: str) -> KeyPair:
        """A bare key pair (public key in place of a certificate) for service account tokens."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = self.directory / f"{stem}.pub"
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return KeyPair(public, _write_key(key, self.directory / f"{stem}.key"))

    def _issue(self, subject: x509.Name, names: list[x509.GeneralName], directory: Path, stem: str) -> KeyPair:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = directory / f"{stem}.crt"
        certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return KeyPair(certificate, _write_key(key, directory / f"{stem}.key"))

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=7))
        )


def _write_key(key: ec.EllipticCurvePrivateKey, path: Path) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
