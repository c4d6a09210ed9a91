"""Checksums as sources write them."""

from __future__ import annotations

import base64
import hashlib
import zlib

import pytest

from trainwright.initializers.digests import GIT_BLOB, Digest, from_base64, from_headers

SHA256 = hashlib.sha256(b"content")
SHA512 = hashlib.sha512(b"content")


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        ("sha256", SHA256.hexdigest()),
        ("sha512", SHA512.hexdigest()),
        ("md5", hashlib.md5(b"content", usedforsecurity=False).hexdigest()),
        ("crc32", f"{zlib.crc32(b'content'):08x}"),
        (GIT_BLOB, "6b584e8ece562ebffc15d38808cd6b98fc3d97ea"),  # printf content | git hash-object --stdin
    ],
)
def test_each_algorithm_computes_what_others_compute(algorithm: str, value: str) -> None:
    hasher = Digest(algorithm, value).hasher(7)
    hasher.update(b"con")
    hasher.update(b"tent")
    assert hasher.hexdigest() == value


@pytest.mark.parametrize("value", ["", "xyz", "AB" * 32, "0" * 63])
def test_a_digest_is_hex_of_the_right_length(value: str) -> None:
    with pytest.raises(ValueError, match="is not a sha256 in hex"):
        Digest("sha256", value)


def in_base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Repr-Digest": f"sha-256=:{in_base64(SHA256.digest())}:"}, "sha256"),
        ({"Repr-Digest": f"md5=:AAAA:, sha-256=:{in_base64(SHA256.digest())}:"}, "sha256"),
        ({"Repr-Digest": f"sha-256=:AA==:, sha-512=:{in_base64(SHA512.digest())}:"}, "sha512"),
        ({"Digest": f"SHA-256={in_base64(SHA256.digest())}"}, "sha256"),
        ({"Content-Digest": f"sha-256=:{in_base64(SHA256.digest())}:"}, None),  # of one answer, which may be a range
        ({"Digest": "sha-256=short"}, None),
        ({"Digest": "SHA-256=%%%"}, None),
        ({}, None),
    ],
)
def test_digests_in_headers(headers: dict[str, str], expected: str | None) -> None:
    found = from_headers(headers)
    assert (found.algorithm if found else None) == expected


def test_a_composite_checksum_is_none() -> None:
    assert from_base64("sha256", f"{in_base64(SHA256.digest())}-3") is None
