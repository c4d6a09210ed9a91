"""`s3://bucket/prefix`: the objects of a bucket that begin with the prefix.

Variables as in the reference: ENDPOINT, REGION, ACCESS_KEY_ID, SECRET_ACCESS_KEY, ROLE_ARN. Buckets are addressed
by path, which every server understands. A prefix is first taken as an object or a directory; only when there is
neither, as the beginning of names, as the reference always does: `s3://b/data` does not fetch `data2/`. A wrong
region is mended by what the server says of it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from trainwright.clock import Clock
from trainwright.initializers.digests import Digest, from_base64
from trainwright.initializers.errors import (
    Changed,
    InitializerError,
    Misconfigured,
    Missing,
    NotPermitted,
    Transient,
    Unreachable,
)
from trainwright.initializers.http import Http, Refused, check_range, pieces, range_header, whole
from trainwright.initializers.names import printable
from trainwright.initializers.s3.answers import Fault, NotXml, Object, fault, page
from trainwright.initializers.s3.credentials import Credentials
from trainwright.initializers.s3.signing import encoded, query_text, sign
from trainwright.initializers.settings import Settings
from trainwright.initializers.source import Item, is_ignored

_PAGE_BYTES = 32 * 2**20
_CHECKED = {"x-amz-checksum-mode": "ENABLED"}
_FIRST_REGION = "us-east-1"


class S3:
    """Objects of a bucket."""

    is_cached = True

    def __init__(self, settings: Settings, http: Http, clock: Clock) -> None:
        get = settings.variables.get
        self._bucket, _, self._prefix = settings.uri.removeprefix("s3://").partition("/")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", self._bucket):
            raise Misconfigured(f"{printable(settings.uri)}: after s3:// comes the name of a bucket, then a path")
        self.uri = printable(settings.uri)
        self._ignore = settings.ignore
        self._http = http
        self._clock = clock
        self._region = get("REGION", "AWS_REGION", "AWS_DEFAULT_REGION") or _FIRST_REGION
        self._endpoint = _endpoint(get("ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
        self._credentials = Credentials(
            settings.variables, http, region=self._region, is_aws=self._endpoint is None, clock=clock
        )
        self._is_signed = False
        self._digests: dict[str, Digest | None] = {}

    async def items(self) -> list[Item]:
        objects = await self._objects()
        if not objects:
            raise Missing(f"{self.uri}: there is no object of that name and none below it: check bucket and path")
        return [self._item(found) for found in objects if not is_ignored(found.key, self._ignore)]

    async def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        key, etag = self._key_and_etag(item)
        headers = {**range_header(start, end, item.size), **_CHECKED}
        if etag:
            headers["If-Match"] = f'"{etag}"'
        async with self._asked(f"/{encoded(key, '/')}", headers=headers) as response:
            check_range(response, start, item.size, f"{self.uri}: {printable(key)}")
            if response.status == 200:
                self._digests[item.name] = _digest_of(response.headers, etag)
            async for piece in pieces(response):
                yield piece

    async def digest(self, item: Item) -> Digest | None:
        if item.name not in self._digests:
            key, etag = self._key_and_etag(item)
            async with self._asked(f"/{encoded(key, '/')}", headers=_CHECKED, method="HEAD") as response:
                self._digests[item.name] = _digest_of(response.headers, etag)
        return self._digests[item.name]

    async def _objects(self) -> list[Object]:
        """The object or directory that is named; else everything whose name begins so."""
        prefix = self._prefix
        exact = [found for found in await self._listed(prefix) if not found.key.endswith("/")]
        if not prefix or prefix.endswith("/"):
            return exact
        return [found for found in exact if found.key == prefix or found.key.startswith(f"{prefix}/")] or exact

    async def _listed(self, prefix: str) -> list[Object]:
        query = {"list-type": "2", "encoding-type": "url"}
        if prefix:
            query["prefix"] = prefix
        objects: list[Object] = []
        tokens: set[str] = set()
        while True:
            async with self._asked("", query=query) as response:
                body = await whole(response, _PAGE_BYTES)
            try:
                found = page(body)
            except NotXml as error:
                raise Unreachable(f"{self.uri}: {error}; is {self._address()} an S3 server?") from error
            objects += found.objects
            if not found.token or found.token in tokens:
                return objects
            tokens.add(found.token)
            query["continuation-token"] = found.token

    def _item(self, found: Object) -> Item:
        name = found.key.removeprefix(self._prefix).lstrip("/") or found.key.rpartition("/")[2]
        location = f"{found.etag} {found.key}"
        identity = f"s3 {self._address()}/{self._bucket} {location} {found.size}"
        return Item(name, found.size, identity, location, resumable=bool(found.etag))

    def _key_and_etag(self, item: Item) -> tuple[str, str]:
        etag, _, key = item.location.partition(" ")
        return key, etag

    @asynccontextmanager
    async def _asked(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a signed request; in the region that the server names, if that is another one."""
        for last in (False, True):
            url = f"{self._address()}/{self._bucket}{path}" + (f"?{query_text(query)}" if query else "")
            keys = await self._credentials.keys()
            self._is_signed = keys is not None
            signed = dict(headers or {})
            if keys:
                signed = sign(method, url, signed, keys, region=self._region, service="s3", now=self._clock.wall())
            try:
                async with self._http.ask(url, private=signed, method=method, redirects=False) as response:
                    yield response
                    return
            except Refused as refused:
                said = fault(refused.body)
                region = refused.headers.get("x-amz-bucket-region") or said.region
                if last or not region or region == self._region:
                    raise self._sentence(refused, said) from None
                self._region = region

    def _address(self) -> str:
        if self._endpoint:
            return self._endpoint
        suffix = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        return f"https://s3.{self._region}.{suffix}"

    def _sentence(self, refused: Refused, said: Fault) -> InitializerError | Transient:
        reason = printable(f"{said.code}: {said.message}" if said.code else f"status {refused.status}")
        if said.code in ("RequestTimeout", "SlowDown", "InternalError"):
            return Transient(reason)
        if said.code == "RequestTimeTooSkewed":
            return NotPermitted(f"{self.uri}: this machine's clock is wrong ({reason}): set it right")
        if said.code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"):
            return NotPermitted(
                f"{self.uri}: the keys are not accepted ({reason}): check ACCESS_KEY_ID and SECRET_ACCESS_KEY"
            )
        if refused.status in (401, 403):
            how = "let them list and read it" if self._is_signed else "set ACCESS_KEY_ID and SECRET_ACCESS_KEY"
            whose = "the keys have no right to it" if self._is_signed else "it is not public, and there are no keys"
            return NotPermitted(f"{self.uri}: {whose} ({reason}): {how}")
        if refused.status == 404:
            return Missing(f"{self.uri}: there is no such bucket or object ({reason}): check the name and ENDPOINT")
        if refused.status in (412, 416):
            return Changed(f"{self.uri}: an object has changed since it was listed")
        return Unreachable(
            f"{self.uri}: {self._address()} answered {refused.status} ({reason}): check ENDPOINT and REGION"
        )


def _endpoint(text: str | None) -> str | None:
    """The address of an S3 server of one's own; https where it does not say."""
    if not text:
        return None
    return (text if text.startswith(("http://", "https://")) else f"https://{text}").rstrip("/")


def _digest_of(headers: Mapping[str, str], etag: str) -> Digest | None:
    """The best checksum of the whole object that S3 has and Python can compute.

    An ETag is an MD5 only of objects that came in one part and are not encrypted with a key of KMS or of the client.
    Checksums of parts (COMPOSITE, or with `-N`), CRC32C and CRC64NVME are not computed; then size and ETag have to do.
    """
    whole_object = headers.get("x-amz-checksum-type", "FULL_OBJECT") == "FULL_OBJECT"
    stored_as_is = headers.get("x-amz-server-side-encryption", "AES256") == "AES256"
    stored_as_is = stored_as_is and "x-amz-server-side-encryption-customer-algorithm" not in headers
    for algorithm in ("sha256", "sha1") if whole_object else ():
        if digest := from_base64(algorithm, headers.get(f"x-amz-checksum-{algorithm}", "")):
            return digest
    if stored_as_is and re.fullmatch("[0-9a-f]{32}", etag):
        return Digest("md5", etag)
    return from_base64("crc32", headers.get("x-amz-checksum-crc32", "")) if whole_object else None
