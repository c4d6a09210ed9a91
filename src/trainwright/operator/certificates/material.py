"""The webhook's certificates as data: what a Secret holds, whether it is good, and what it should hold next. No I/O.

A CA is replaced in three steps, so that no request ever meets a certificate it cannot check:

    1. a new CA joins `ca.crt` beside the old one; the old certificate stays in service
    2. once everybody has had time to trust both, a certificate of the new CA goes into service
    3. once every replica serves that one, the old CA leaves `ca.crt`

`next_material` is that decision as a pure function of what is stored and the time; whoever wins the write, the result
is the same.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from trainwright.api.keyusage import key_usage

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

CA_NAME = "kubeflow-trainer-ca"
ORGANIZATION = "kubeflow-trainer"
BACKDATE = timedelta(hours=1)
LONGEST_WAIT = timedelta(hours=12)
INJECTION_SECONDS = 10.0  # between two looks whether the API server trusts the new CA yet


class Policy(msgspec.Struct, frozen=True):
    """How long certificates last, how early they are renewed, how long old and new go together."""

    dns_name: str
    authority_days: float = 3650.0
    certificate_days: float = 365.0
    renew_days: float = 90.0
    overlap_seconds: float = 600.0
    addresses: tuple[str, ...] = ()  # further names or IP addresses to answer for


class Material(msgspec.Struct, frozen=True):
    """The four files of the Secret, PEM. `authorities` has the oldest first; the key is of the newest."""

    authorities: tuple[bytes, ...]
    authority_key: bytes
    certificate: bytes
    key: bytes
    changed_at: float = 0.0  # when the CA or the certificate was last replaced

    @property
    def bundle(self) -> bytes:
        return b"".join(self.authorities)


def next_material(stored: Material | None, policy: Policy, now: datetime, *, injected: bool) -> Material | None:
    """What the Secret should hold now; None when it is fine. `injected`: every caller trusts all of `authorities`."""
    if stored is None or not _has_usable_authority(stored, now):
        authority, key = make_authority(policy, now)
        return _issue((authority,), key, policy, now)
    soon = now + timedelta(days=policy.renew_days)
    settled = now.timestamp() >= stored.changed_at + policy.overlap_seconds
    newest = _parse(stored.authorities[-1])
    if newest.not_valid_after_utc <= soon and (settled or newest.not_valid_after_utc <= now):
        authority, key = make_authority(policy, now)
        valid = tuple(pem for pem in stored.authorities if _parse(pem).not_valid_after_utc > now)
        joined = msgspec.structs.replace(
            stored, authorities=(*valid, authority), authority_key=key, changed_at=now.timestamp()
        )
        return joined if _serves(joined, policy, now) else _issue(joined.authorities, key, policy, now)
    if not _serves(stored, policy, now):
        return _issue(stored.authorities, stored.authority_key, policy, now)
    if not _is_signed_by(stored.certificate, newest):  # step 2, and not a moment before everybody trusts the new CA
        trusted = settled and injected
        return _issue(stored.authorities, stored.authority_key, policy, now) if trusted else None
    if len(stored.authorities) > 1 and settled:
        return msgspec.structs.replace(stored, authorities=stored.authorities[-1:], changed_at=now.timestamp())
    ends = _parse(stored.certificate).not_valid_after_utc
    if ends <= soon and ends < newest.not_valid_after_utc:  # one that lasts as long as its CA waits for the next CA
        return _issue(stored.authorities, stored.authority_key, policy, now)
    return None


def seconds_until_next(stored: Material, policy: Policy, now: datetime) -> float:
    """When `next_material` may say something else, at the latest."""
    if len(stored.authorities) > 1:
        overlap = stored.changed_at + policy.overlap_seconds - now.timestamp()
        return overlap if overlap > 0 else INJECTION_SECONDS
    early = timedelta(days=policy.renew_days)
    ends = (_parse(pem).not_valid_after_utc for pem in (stored.authorities[-1], stored.certificate))
    return max(1.0, min((end - early - now).total_seconds() for end in (*ends, now + early + LONGEST_WAIT)))


def make_authority(policy: Policy, now: datetime) -> tuple[bytes, bytes]:
    """A self-signed CA: certificate and key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _new_key()
    name = _name(CA_NAME)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + timedelta(days=policy.authority_days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(CA_NAME)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(**key_usage(signs=True)), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate), _key_pem(key)


def _issue(authorities: tuple[bytes, ...], authority_key: bytes, policy: Policy, now: datetime) -> Material:
    """The same authorities with a fresh server certificate of the newest."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority = _parse(authorities[-1])
    signer = _parse_key(authority_key)
    key = _new_key()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(policy.dns_name))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(min(now + timedelta(days=policy.certificate_days), authority.not_valid_after_utc))
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in _names(policy)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()),  # type: ignore[arg-type]
            critical=False,
        )
        .add_extension(x509.KeyUsage(**key_usage(signs=False)), critical=True)
        .sign(signer, hashes.SHA256())
    )
    return Material(authorities, authority_key, _pem(certificate), _key_pem(key), now.timestamp())


def split_bundle(pem: bytes) -> tuple[bytes, ...]:
    end = b"-----END CERTIFICATE-----"
    return tuple(part.strip() + b"\n" + end + b"\n" for part in pem.split(end) if b"BEGIN CERTIFICATE" in part)


def _has_usable_authority(stored: Material, now: datetime) -> bool:
    """The newest CA can be read, is valid, and its key is the one beside it."""
    try:
        newest = _parse(stored.authorities[-1])
        key = _parse_key(stored.authority_key)
        return newest.not_valid_after_utc > now and key.public_key() == newest.public_key()
    except (IndexError, ValueError, TypeError):
        return False


def _serves(stored: Material, policy: Policy, now: datetime) -> bool:
    """The certificate can be read, belongs to its key and to one of the CAs, is valid, and has the right names."""
    from cryptography import x509

    try:
        certificate = _parse(stored.certificate)
        key = _parse_key(stored.key)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return (
        key.public_key() == certificate.public_key()
        and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
        and list(names) == [_general(name) for name in _names(policy)]
        and any(_is_signed_by(stored.certificate, _parse(pem)) for pem in stored.authorities)
    )


def _is_signed_by(certificate: bytes, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        _parse(certificate).verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _parse(pem: bytes) -> x509.Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem)


def _parse_key(pem: bytes) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    # Testing the primes of a key from our own Secret takes a tenth of a second and shows nothing that we do not
    # compare.
    key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("not an RSA key")
    return key


def _names(policy: Policy) -> tuple[str, ...]:
    return (policy.dns_name, *policy.addresses)


def _general(name: str) -> x509.GeneralName:
    from ipaddress import ip_address

    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64]),  # X.509 allows no more; clients read the SAN
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
        ]
    )


def _new_key() -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: RSAPrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
