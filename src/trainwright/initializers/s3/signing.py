"""AWS Signature Version 4. Pure.

In: a request, credentials and the time. Out: the headers to add. The signature covers method, path, query and the
headers given, in the canonical form that AWS documents; the path is expected to be percent-encoded once, as S3
signs it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit


@dataclass(frozen=True, slots=True)
class Keys:
    """An access key. `expires` is seconds since the epoch, None for never."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Keys({self.access_key_id!r})"  # never the secret


def sign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    keys: Keys,
    *,
    region: str,
    service: str,
    now: float,
    body: bytes = b"",
) -> dict[str, str]:
    """The headers of the request with those that sign it."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    signed = {**headers, "X-Amz-Date": stamp}
    content = hashlib.sha256(body).hexdigest()
    if service == "s3":
        signed["X-Amz-Content-Sha256"] = content
    if keys.session_token:
        signed["X-Amz-Security-Token"] = keys.session_token
    canonical, names = _canonical(method, url, signed, content)
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    credential = f"Credential={keys.access_key_id}/{scope}"
    signature = f"Signature={_mac(key, text).hex()}"
    return {**signed, "Authorization": f"AWS4-HMAC-SHA256 {credential},SignedHeaders={names},{signature}"}


def encoded(text: str, safe: str = "") -> str:
    """Percent-encoding as AWS wants it: everything but letters, digits and -._~."""
    return quote(text, safe=f"-._~{safe}")


def query_text(query: Mapping[str, str]) -> str:
    """A query string in the order in which it is signed."""
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in sorted(query.items()))


def _canonical(method: str, url: str, headers: Mapping[str, str], content: str) -> tuple[str, str]:
    """The request in canonical form, and the names of the headers it covers."""
    address = urlsplit(url)
    values = {"host": address.netloc, **{name.lower(): " ".join(value.split()) for name, value in headers.items()}}
    names = ";".join(sorted(values))
    lines = [f"{name}:{value}\n" for name, value in sorted(values.items())]
    query = query_text(dict(parse_qsl(address.query, keep_blank_values=True)))
    return "\n".join([method, address.path or "/", query, "".join(lines), names, content]), names


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
