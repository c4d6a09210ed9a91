"""What a browser may send, and for whom: Host and Origin checks, sessions, CSRF tokens.

    Guard.refusal(request)   the reason why no request of this kind is answered, or None
    Door                     who a request is from: `KeyDoor` on one's own machine, `TokenDoor` in a cluster
    Viewer                   whose connection to the API server answers it

A page of another site can make a browser send requests here. The Host check refuses those that reached us under a
name that is not ours (DNS rebinding), the Origin check those that another page sent, and a change needs a token that
only a page of ours can read. Cookies are HttpOnly and SameSite=Strict. No secret is ever part of a URL.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from trainwright.client.credentials import Credential, StaticCredentials
from trainwright.client.kubeconfig import Connection
from trainwright.dashboard.viewer import Viewer
from trainwright.http.request import Request

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SESSION_SECONDS = 12 * 3600.0
COOKIE_SECONDS = 30 * 86400
MOST_SESSIONS = 1000
SAFE = ("GET", "HEAD")
FORM = "/session"
"""Where the form of the file is sent that `trainwright ui` opens."""


class Guard:
    """`hosts` are the names under which this server is reached, beside those of the loopback interface."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = {host.lower() for host in (*LOOPBACK, *hosts)}

    def refusal(self, request: Request) -> str | None:
        host = request.headers.get("Host", "")
        if name_of(host) not in self._hosts:
            return f"this server is not called {name_of(host)!r}; name it with --allowed-host if it should be"
        origin = request.headers.get("Origin")
        if request.path == FORM and request.method == "POST" and origin == "null":
            return None  # the form of a file of this machine, which has the key in it
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return "the request comes from a page of another site"
        is_foreign = request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none")
        if origin is None and is_foreign and (request.method not in SAFE or request.path.startswith("/api/")):
            return "the request comes from a page of another site"
        return None


def name_of(host: str) -> str:
    """The name in a Host header, without the port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


class Door(Protocol):
    """Lets viewers in."""

    kind: str
    """`key` or `token`: what the page asks for."""

    def viewer(self, request: Request) -> Viewer | None:
        """Who this request is from; None when nobody has signed in."""
        ...

    async def enter(self, secret: str) -> tuple[Viewer, str] | None:
        """The viewer, and the value of the cookie that names the session; None when the secret is wrong."""
        ...

    def leave(self, request: Request) -> None: ...

    @property
    def cookie(self) -> str: ...


class KeyDoor:
    """One person's own machine: everybody who has the key of the state directory sees what its owner sees.

    Other users of the machine can connect to a port of the loopback interface, but cannot read the key's file.
    """

    kind = "key"

    def __init__(self, key: str, viewer: Viewer, cookie: str) -> None:
        self._key = key
        self._session = _derived(key, "session")
        self._viewer = viewer
        self.cookie = cookie
        viewer.csrf = _derived(key, "csrf")

    def viewer(self, request: Request) -> Viewer | None:
        given = cookies(request).get(self.cookie, "")
        return self._viewer if hmac.compare_digest(given.encode(), self._session.encode()) else None

    async def enter(self, secret: str) -> tuple[Viewer, str] | None:
        plain = secret.strip().lower().replace(" ", "")
        if not hmac.compare_digest(plain.encode(), self._key.encode()):
            return None
        return self._viewer, self._session

    def leave(self, request: Request) -> None:
        """The key stays the key: the browser forgets the cookie."""


class TokenDoor:
    """A cluster: a viewer is whoever the API server takes the bearer token for.

    The token comes from the form of the page, and is kept in memory for the session; or with every request in the
    Authorization header, from a proxy that knows the user.
    """

    kind = "token"
    cookie = "trainwright-session"

    def __init__(self, viewer_of: Callable[[StaticCredentials], Viewer], now: Callable[[], float] = time.time) -> None:
        self._viewer_of = viewer_of
        self._now = now
        self._secret = secrets.token_hex(32)
        self._sessions: dict[str, tuple[Viewer, float]] = {}
        """Of tokens that the API server has accepted, by the name in the cookie, with the time of the last request."""
        self._headers: dict[str, tuple[Viewer, float]] = {}
        """Of tokens in headers. Nobody has looked at those, so that they cannot push anybody's session out."""

    def viewer(self, request: Request) -> Viewer | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip().isascii() and token.strip():
            session, viewer = self._viewer(token.strip(), self._headers)
            self._keep(self._headers, session, viewer)
            return viewer
        session = cookies(request).get(self.cookie, "")
        found = self._sessions.get(session)
        if found is None or self._now() - found[1] > SESSION_SECONDS:
            self._sessions.pop(session, None)
            return None
        self._keep(self._sessions, session, found[0])
        return found[0]

    async def enter(self, secret: str) -> tuple[Viewer, str] | None:
        token = "".join(secret.split())
        if not token or not token.isascii():
            return None
        session, viewer = self._viewer(token, self._sessions)
        if await viewer.name() is None:
            return None
        self._keep(self._sessions, session, viewer)
        return viewer, session

    def _viewer(self, token: str, among: Mapping[str, tuple[Viewer, float]]) -> tuple[str, Viewer]:
        """The session of a token and its viewer, a new one if there is none. The name tells nothing about the token."""
        session = _derived(self._secret, f"session {token}")
        if (found := among.get(session)) is not None:
            return session, found[0]
        viewer = self._viewer_of(StaticCredentials(Credential(f"Bearer {token}")))
        viewer.csrf = _derived(self._secret, f"csrf {token}")
        return session, viewer

    def _keep(self, among: dict[str, tuple[Viewer, float]], session: str, viewer: Viewer) -> None:
        while session not in among and len(among) >= MOST_SESSIONS:
            among.pop(min(among, key=lambda name: among[name][1]))
        among[session] = (viewer, self._now())

    def viewers(self) -> list[Viewer]:
        return [viewer for viewer, _ in (*self._sessions.values(), *self._headers.values())]

    def leave(self, request: Request) -> None:
        self._sessions.pop(cookies(request).get(self.cookie, ""), None)


def cookies(request: Request) -> Mapping[str, str]:
    pairs = (part.strip().partition("=") for part in request.headers.get("Cookie", "").split(";"))
    return {name: value for name, _, value in pairs}


def set_cookie(name: str, value: str, *, secure: bool) -> str:
    """The header that begins a session, or with an empty value ends it."""
    age = COOKIE_SECONDS if value else 0
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{'; Secure' if secure else ''}"


def with_credentials(connection: Connection, credentials: StaticCredentials) -> Connection:
    """The same API server, as somebody else."""
    return msgspec.structs.replace(connection, credentials=credentials)


def _derived(secret: str, purpose: str) -> str:
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()
