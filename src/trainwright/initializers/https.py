"""`https://`: one file from a web server.

A first request for one byte tells size, version and whether ranges are served; a HEAD would not do, since a
pre-signed address is good for GET only. A checksum comes from the fragment (`#sha256=…`) or from the server's
`Repr-Digest` or `Digest`. ACCESS_TOKEN, where set, is sent as a bearer token.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from urllib.parse import unquote

from trainwright.initializers.digests import Digest, from_headers
from trainwright.initializers.errors import Changed, InitializerError, Misconfigured, Missing, NotPermitted, Unreachable
from trainwright.initializers.http import Http, Refused, check_range, parsed, pieces, range_header, shown
from trainwright.initializers.names import printable
from trainwright.initializers.source import Item, is_ignored

_FRAGMENTS = ("sha256", "sha384", "sha512")


class Https:
    """The file at an address."""

    is_cached = True

    def __init__(self, uri: str, http: Http, access_token: str | None, ignore: tuple[str, ...]) -> None:
        address, _, fragment = uri.partition("#")
        self._address = address
        self._expected = _digest_of(fragment)
        self._http = http
        self._private = {"Authorization": f"Bearer {access_token}"} if access_token else {}
        self._ignore = ignore
        self._unchanged: dict[str, str] = {}
        url = parsed(address)
        self.uri = shown(url)
        self.name = unquote(url.raw_path.rpartition("/")[2])
        if url.user and access_token:
            raise Misconfigured(f"{self.uri}: the address has a user, and ACCESS_TOKEN is set: leave out one of them")
        if not self.name:
            raise Misconfigured(f"{self.uri} names no file: the address has to end in the file's name")

    async def items(self) -> list[Item]:
        if is_ignored(self.name, self._ignore):
            return []
        try:
            async with self._http.ask(self._address, {"Range": "bytes=0-0"}, private=self._private) as response:
                headers: Mapping[str, str] = response.headers
                ranges = response.status == 206
                length = (
                    headers.get("Content-Range", "").rpartition("/")[2] if ranges else headers.get("Content-Length", "")
                )
        except Refused as refused:
            length, ranges, headers = refused.headers.get("Content-Range", "").rpartition("/")[2], True, refused.headers
            if refused.status != 416 or length != "0":  # of an empty file there is no first byte
                raise self._sentence(refused) from None
        size = int(length) if length.isdecimal() else None
        digest = self._expected or from_headers(headers)
        version = _version(headers)
        if version:
            self._unchanged = {"If-Range": version}
        identity = f"{digest.algorithm}:{digest.value}" if digest else f"{self._address} {version} {size}"
        known = bool(digest or version) and size is not None and ranges
        return [Item(self.name, size, identity, self._address, digest, resumable=known)]

    async def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        wanted = range_header(start, end, item.size)
        headers = {**wanted, **self._unchanged} if wanted else {}
        try:
            async with self._http.ask(item.location, headers, private=self._private) as response:
                check_range(response, start, item.size, self.uri)
                async for piece in pieces(response):
                    yield piece
        except Refused as refused:
            raise self._sentence(refused) from None

    async def digest(self, item: Item) -> Digest | None:
        return item.digest

    def _sentence(self, refused: Refused) -> InitializerError:
        if refused.status in (401, 403):
            how = "ACCESS_TOKEN was not accepted" if self._private else "set ACCESS_TOKEN if the server takes a token"
            return NotPermitted(f"{self.uri}: the server refuses it ({refused.status}): {how}")
        if refused.status in (404, 410):
            return Missing(f"{self.uri}: there is no such file ({refused.status}): check the address")
        if refused.status in (412, 416):
            return Changed(f"{self.uri}: it has changed since it was asked for first")
        return Unreachable(f"{self.uri}: the server answered {refused.status}: check the address")


def _digest_of(fragment: str) -> Digest | None:
    """`sha256=HEX` after the `#`. Anything else is refused, so that a misspelt checksum is not silently left out."""
    if not fragment:
        return None
    algorithm, _, value = fragment.partition("=")
    try:
        if algorithm not in _FRAGMENTS:
            raise ValueError
        return Digest(algorithm, value.lower())
    except ValueError:
        raise Misconfigured(
            f"#{printable(fragment)} is no checksum: after # comes sha256= (or sha384=, sha512=) and the value in hex"
        ) from None


def _version(headers: Mapping[str, str]) -> str | None:
    """A validator for `If-Range`: a strong ETag, or the time of the last change."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified")
