"""Checksums: which one a source promises for a file, and whether the bytes have it.

A `Digest` names an algorithm and the expected value in hex. Sources find them where their protocol puts them: the
hub's listing (sha256 of LFS files, Git's blob id of others), S3's headers, a URL's fragment, `Repr-Digest` and
`Digest`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

GIT_BLOB = "git-blob"
"""SHA-1 over Git's header and the content: how Git names a file."""

_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128, "sha1": 40, "md5": 32, "crc32": 8, GIT_BLOB: 40}
_HTTP_NAMES = {"sha-512": "sha512", "sha-256": "sha256"}  # strongest first


class Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


@dataclass(frozen=True, slots=True)
class Digest:
    algorithm: str
    value: str

    def __post_init__(self) -> None:
        if not re.fullmatch(f"[0-9a-f]{{{_LENGTHS[self.algorithm]}}}", self.value):
            raise ValueError(f"{self.value!r} is not a {self.algorithm} in hex")

    def hasher(self, size: int) -> Hasher:
        """What computes this digest over `size` bytes."""
        if self.algorithm == "crc32":
            return _Crc32()
        if self.algorithm == GIT_BLOB:
            return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        return hashlib.new(self.algorithm, usedforsecurity=False)

    def __str__(self) -> str:
        return f"{self.algorithm} {self.value}"


def from_base64(algorithm: str, text: str) -> Digest | None:
    """A digest that a header has in base64; None when it is none of that algorithm."""
    try:
        return Digest(algorithm, base64.b64decode(text, validate=True).hex())
    except (binascii.Error, ValueError):
        return None


def from_headers(headers: Mapping[str, str]) -> Digest | None:
    """The digest of the whole representation, from `Repr-Digest` (RFC 9530) or `Digest` (RFC 3230).

    `Content-Digest` and `Content-MD5` are of the bytes of one answer, which may be a range: they are not used.
    """
    for header, pattern in (("Repr-Digest", r"{}=:([A-Za-z0-9+/=]+):"), ("Digest", r"{}=([A-Za-z0-9+/=]+)")):
        for name, algorithm in _HTTP_NAMES.items():
            found = re.search(rf"(?:^|[,\s]){pattern.format(name)}", headers.get(header, ""), re.IGNORECASE)
            if found and (digest := from_base64(algorithm, found.group(1))):
                return digest
    return None
