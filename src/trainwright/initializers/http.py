"""HTTP for the sources: one request, its redirects, and what its failure means.

`Http.ask` yields an answer of 200 or 206 or raises: `Transient` for what may pass (no connection, a cut, 429, 5xx),
`Refused` for a status that the source turns into a sentence, an `InitializerError` for what no source can mend. Two
rules guard credentials: a redirect to another origin loses them, and one from https to http is not followed.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from trainwright.initializers.errors import Changed, Misconfigured, Transient, Unreachable
from trainwright.initializers.names import printable
from trainwright.version import __version__

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0
"""The longest silence within an answer. After it the connection counts as dead."""

_BUFFER = 2**20
_REDIRECTS = 10
_ERROR_BODY = 64 * 1024
_PASSING = frozenset([408, 425, 429, 500, 502, 503, 504])


class Refused(Exception):
    """An answer of 300 or more that asking again will not change."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Http:
    """A pool of connections, through the environment's proxies; trust is the system's, or that of `ca_file`."""

    def __init__(self, ca_file: str | None = None) -> None:
        self._ca_file = ca_file
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        try:
            trust = ssl.create_default_context(cafile=self._ca_file)
        except OSError as error:
            raise Misconfigured(f"the roots of trust in {self._ca_file} cannot be read: {error}") from error
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trust),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS),
            headers={"User-Agent": f"trainwright/{__version__}", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_BUFFER,
            auto_decompress=False,  # a file is stored as it is, whatever the server calls its encoding
            trust_env=False,  # it would also take credentials from ~/.netrc, beside ours; see `_proxy`
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    @asynccontextmanager
    async def ask(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        private: Mapping[str, str] | None = None,
        method: str = "GET",
        body: bytes | None = None,
        redirects: bool = True,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to one request. `private` headers go to the origin of `url` only."""
        if redirects:
            response = await self._follow(method, url, headers or {}, private or {})
        else:
            response = await self._ask(method, parsed(url), {**(headers or {}), **(private or {})}, body)
        async with response:
            if response.status in (200, 206):
                yield response
                return
            said = await _beginning(response)
            if response.status in _PASSING:
                reason = f"{shown(response.url)} answered {response.status} {printable(response.reason or '')}".rstrip()
                raise Transient(reason, _pause(response.headers))
            raise Refused(response.status, response.headers, said)

    async def _follow(
        self, method: str, url: str, headers: Mapping[str, str], private: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        first = here = parsed(url)
        for _ in range(_REDIRECTS):
            own = private if here.origin() == first.origin() else {}
            response = await self._ask(method, here, {**headers, **own})
            location = response.headers.get("Location")
            if response.status not in (301, 302, 303, 307, 308) or not location:
                return response
            response.release()
            there = _joined(here, location)
            if there.scheme not in ("http", "https") or (here.scheme == "https" and there.scheme != "https"):
                raise Unreachable(f"{shown(here)} leads to {shown(there)}, which is not https: it was not asked")
            here = there
        raise Unreachable(f"{shown(first)}: more than {_REDIRECTS} redirects")

    async def _ask(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "use `async with`"
        try:
            return await self._session.request(
                method, url, headers=headers, data=body, allow_redirects=False, proxy=_proxy(url)
            )
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise Unreachable(
                f"{shown(url)}: the server's certificate is not trusted ({_cause(error)}). If its authority is your "
                f"own, set SSL_CERT_FILE to a file with its certificate"
            ) from error
        except (aiohttp.InvalidURL, ValueError) as error:
            raise Misconfigured(f"{shown(url)} is not an address that can be asked: {printable(str(error))}") from error
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise Transient(f"{shown(url)}: {_cause(error)}") from error


async def pieces(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The body as it arrives. An answer that is cut off is `Transient`."""
    try:
        while piece := await response.content.readany():
            yield piece
    except (aiohttp.ClientError, OSError) as error:
        raise Transient(f"{shown(response.url)}: {_cause(error)}") from error


async def whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """A body that has to be short."""
    found: list[bytes] = []
    size = 0
    async for piece in pieces(response):
        found.append(piece)
        size += len(piece)
        if size > limit:
            raise Unreachable(
                f"{shown(response.url)}: the answer is longer than {limit} bytes; is it the right server?"
            )
    return b"".join(found)


def range_header(start: int, end: int | None, size: int | None) -> dict[str, str]:
    """The header that asks for a part; none for the whole."""
    return {} if start == 0 and end == size else {"Range": f"bytes={start}-{'' if end is None else end - 1}"}


def check_range(response: aiohttp.ClientResponse, start: int, size: int | None, what: str) -> None:
    """Refuse an answer that begins elsewhere than asked, or is of a file of another length: the file has changed."""
    begins = 0
    if response.status == 206:
        words = response.headers.get("Content-Range", "").removeprefix("bytes ").split("-")
        begins = int(words[0]) if words[0].isdecimal() else -1
    elif size is not None and response.content_length not in (None, size):
        begins = -1
    if begins != start:
        raise Changed(f"{what}: it has changed since it was listed")


def shown(url: URL) -> str:
    """An address for a message: without credentials, query and fragment, which may be secrets."""
    try:
        return printable(str(url.with_user(None).with_query(None).with_fragment(None)))
    except ValueError:  # a relative address has no user
        return printable(url.path)


def parsed(text: str) -> URL:
    """An address as it is written, nothing re-encoded: signatures may depend on that."""
    try:
        url = _checked(URL(text, encoded=True))
    except ValueError as error:
        raise Misconfigured(
            f"{printable(text.partition('?')[0])} is not an address: {printable(str(error))}"
        ) from error
    return url


def _checked(url: URL) -> URL:
    """An address with all its parts; what is not encoded anew is not looked at until it is asked for."""
    if not url.origin().host or not url.port:
        raise ValueError("it names no host")
    return url


def _joined(here: URL, location: str) -> URL:
    try:
        there = _checked(here.join(URL(location, encoded=True)))
    except ValueError as error:
        raise Unreachable(f"{shown(here)} leads to {printable(location.partition('?')[0])}: not an address") from error
    return there


def _proxy(url: URL) -> str | None:
    """The proxy that the environment (on macOS also the system) has for an address."""
    proxy = getproxies().get(url.scheme)
    return None if proxy is None or proxy_bypass(url.host or "") else proxy


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """As much of a failure's body as is worth reading; it may be cut off, too."""
    try:
        return await response.content.read(_ERROR_BODY)
    except (aiohttp.ClientError, OSError):
        return b""


def _pause(headers: Mapping[str, str]) -> float | None:
    """When the server wants to be asked again, in seconds."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


def _cause(error: BaseException) -> str:
    """An error of the network in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the name does not resolve"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return "the connection was cut"
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    return printable(
        getattr(inner, "strerror", None) or getattr(inner, "verify_message", None) or str(inner) or repr(inner)
    )
