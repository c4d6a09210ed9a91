"""Certificates over years, in virtual time: at every moment all clients trust the certificate that is served."""

from __future__ import annotations

import functools
import itertools
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from trainwright.operator.certificates import material
from trainwright.operator.certificates.material import (
    Material,
    Policy,
    make_authority,
    next_material,
    seconds_until_next,
    split_bundle,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy("operator.ns.svc", overlap_seconds=600.0)


@functools.cache
def keys() -> Iterator[rsa.RSAPrivateKey]:
    """A few real keys, used in turn: making one for every step of thirty years would take minutes."""
    made = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(5)]
    return itertools.cycle(made)


@pytest.fixture(autouse=True)
def _few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "_new_key", lambda: next(keys()))


def certificate(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def is_trusted(pem: bytes, bundle: tuple[bytes, ...]) -> bool:
    for authority in map(certificate, bundle):
        try:
            certificate(pem).verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - any reason not to trust it
            continue
        return True
    return False


def fresh(now: datetime = START, policy: Policy = POLICY) -> Material:
    material = next_material(None, policy, now, injected=True)
    assert material is not None
    return material


def test_from_nothing_a_ca_and_a_certificate_of_the_references_shape_are_made() -> None:
    it = fresh()
    authority, server = certificate(it.authorities[0]), certificate(it.certificate)
    assert authority.subject.rfc4514_string() == "O=kubeflow-trainer,CN=kubeflow-trainer-ca"
    assert authority.not_valid_after_utc == START + timedelta(days=3650)
    assert server.not_valid_before_utc == START - timedelta(hours=1)
    assert server.not_valid_after_utc == START + timedelta(days=365)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["operator.ns.svc"]
    assert b"RSA PRIVATE KEY" in it.key
    assert next_material(it, POLICY, START, injected=True) is None


def test_what_is_made_can_be_served_and_verified_by_openssl() -> None:
    context = ssl.create_default_context(cadata=fresh(datetime.now(UTC)).bundle.decode())
    assert context.cert_store_stats()["x509_ca"] == 1


def test_a_certificate_is_renewed_ninety_days_ahead_by_the_same_ca() -> None:
    it = fresh()
    assert next_material(it, POLICY, START + timedelta(days=274), injected=True) is None
    renewed = next_material(it, POLICY, START + timedelta(days=276), injected=True)
    assert renewed is not None
    assert renewed.authorities == it.authorities
    assert renewed.certificate != it.certificate
    assert is_trusted(renewed.certificate, it.authorities)


def test_a_ca_is_replaced_in_three_steps_and_every_step_trusts_the_one_before() -> None:
    it = fresh()
    now = START + timedelta(days=3600)
    server = next_material(it, Policy("operator.ns.svc", renew_days=1), now - timedelta(days=30), injected=True)
    assert server is not None
    first = next_material(server, POLICY, now, injected=True)
    assert first is not None
    assert len(first.authorities) == 2
    assert is_trusted(first.certificate, it.authorities), "the old certificate stays in service"
    assert next_material(first, POLICY, now + timedelta(seconds=300), injected=True) is None, "nobody is hurried"
    later = now + timedelta(seconds=601)
    assert next_material(first, POLICY, later, injected=False) is None, "not before everybody trusts both"
    second = next_material(first, POLICY, later, injected=True)
    assert second is not None
    assert is_trusted(second.certificate, second.authorities[-1:])
    assert len(second.authorities) == 2, "the old CA stays while replicas may still serve with the old one"
    third = next_material(second, POLICY, later + timedelta(seconds=601), injected=True)
    assert third is not None
    assert third.authorities == second.authorities[-1:]
    assert third.certificate == second.certificate


def test_over_thirty_years_whoever_trusts_the_last_bundle_can_check_the_next_certificate() -> None:
    now = START
    stored = fresh()
    trusted = stored.authorities
    changes = 0
    while now < START + timedelta(days=30 * 365):
        following = next_material(stored, POLICY, now, injected=True)
        if following is None:
            wait = seconds_until_next(stored, POLICY, now)  # half a day at most; here it may be a few weeks
            now += timedelta(days=20) if wait == 12 * 3600.0 else timedelta(seconds=wait)
            continue
        changes += 1
        assert is_trusted(following.certificate, trusted), "a caller that has not heard of the change"
        assert certificate(following.certificate).not_valid_after_utc > now
        trusted = stored.authorities  # the slowest caller is one step behind
        stored = following
        trusted = stored.authorities if len(stored.authorities) > 1 else trusted
    assert changes > 20
    assert certificate(stored.authorities[-1]).not_valid_after_utc > now


@pytest.mark.parametrize("late", [0, 1, 300, 599])
def test_a_certificate_renewed_right_before_its_ca_is_due_does_not_hold_up_the_next_ca(late: int) -> None:
    due = START + timedelta(days=POLICY.authority_days - POLICY.renew_days)
    first = fresh()
    renewed = next_material(first, POLICY, due - timedelta(seconds=600 - late), injected=True)
    assert renewed is not None
    assert renewed.authorities == first.authorities
    for seconds in range(0, 1200, 60):
        joined = next_material(renewed, POLICY, due + timedelta(seconds=seconds), injected=True)
        if joined is not None:
            break
    assert joined is not None
    assert joined.authorities[:-1] == first.authorities
    assert joined.certificate == renewed.certificate


def damaged(kind: str) -> Material:
    it = fresh()
    other_authority, other_key = make_authority(POLICY, START)
    return {
        "no CA": Material((), it.authority_key, it.certificate, it.key),
        "unreadable CA": Material((b"nonsense",), it.authority_key, it.certificate, it.key),
        "another CA's key": Material(it.authorities, other_key, it.certificate, it.key),
        "another CA": Material((other_authority,), other_key, it.certificate, it.key),
        "unreadable certificate": Material(it.authorities, it.authority_key, b"nonsense", it.key),
        "another key": Material(it.authorities, it.authority_key, it.certificate, other_key),
        "empty": Material((), b"", b"", b""),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["no CA", "unreadable CA", "another CA's key", "another CA", "unreadable certificate", "another key", "empty"],
)
def test_damage_is_healed_in_one_step(kind: str) -> None:
    healed = next_material(damaged(kind), POLICY, START, injected=False)
    assert healed is not None
    assert is_trusted(healed.certificate, healed.authorities)
    assert next_material(healed, POLICY, START, injected=False) is None


def test_what_has_expired_while_nobody_ran_is_replaced_at_once() -> None:
    now = START + timedelta(days=4000)
    healed = next_material(fresh(), POLICY, now, injected=False)
    assert healed is not None
    assert certificate(healed.certificate).not_valid_after_utc > now
    assert all(certificate(pem).not_valid_after_utc > now for pem in healed.authorities)


def test_another_name_needs_another_certificate_of_the_same_ca() -> None:
    it = fresh()
    renamed = next_material(it, Policy("other.ns.svc", addresses=("127.0.0.1",)), START, injected=True)
    assert renamed is not None
    assert renamed.authorities == it.authorities


def test_a_bundle_is_split_into_its_certificates() -> None:
    one, _ = make_authority(POLICY, START)
    two, _ = make_authority(POLICY, START)
    assert split_bundle(b"junk before\n" + one + b"\n" + two)[1] == two
    assert split_bundle(b"") == ()
