"""What a browser may send to the page's server, over a real socket."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trainwright.client.credentials import StaticCredentials
from trainwright.client.kubeconfig import Connection
from trainwright.dashboard.curves import Curves
from trainwright.dashboard.guard import MOST_SESSIONS, SESSION_SECONDS, TokenDoor, with_credentials
from trainwright.dashboard.serve import Page, own_page
from trainwright.dashboard.viewer import Viewer
from trainwright.http.exchange import Exchange
from trainwright.http.headers import Headers
from trainwright.http.pool import Address, Pool
from trainwright.http.request import Body, Request
from trainwright.runs import RunsHome

KEY = "abcde-fghjk"


def nowhere() -> Connection:
    return Connection("http://127.0.0.1:9", StaticCredentials())


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    async with own_page(listener, KEY, nowhere, RunsHome(tmp_path)) as page:
        yield page


class Browser:
    """Sends requests as a browser would, with the headers that a test chooses."""

    def __init__(self, page: Page) -> None:
        self.port = page.port
        self.host = f"127.0.0.1:{page.port}"
        self.cookie = ""

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        fields = {"Host": self.host, "Content-Length": str(len(data)), "Content-Type": "application/json"}
        fields |= {"Cookie": self.cookie} if self.cookie else {}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        pool = Pool(Address(f"http://127.0.0.1:{self.port}", "server"), None, None)
        exchange: Exchange = await pool.take(None)
        try:
            reply = exchange.request(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
            content = await reply.body(10)
        finally:
            pool.close()
            exchange.close()
        if cookie := reply.headers.get("Set-Cookie"):
            self.cookie = cookie.partition(";")[0]
        is_json = reply.headers.get("Content-Type", "").startswith("application/json")
        return reply.status, msgspec.json.decode(content) if is_json else content, reply.headers

    async def sign_in(self) -> str:
        status, _, _ = await self("POST", "/api/session", {"secret": KEY}, Origin=f"http://{self.host}")
        assert status == 200
        _, me, _ = await self("GET", "/api/me")
        return str(me["csrf"])


async def test_a_stranger_gets_the_page_and_no_answer(page: Page) -> None:
    browser = Browser(page)
    status, _, headers = await browser("GET", "/")
    assert status == 200
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    for path in ("/api/me", "/api/runs", "/api/stream/jobs", "/api/objects"):
        assert (await browser("GET", path))[0] == 401, path
    assert (await browser("POST", "/api/session", {"secret": "wrong"}))[0] == 401


async def test_another_name_of_this_server_is_refused(page: Page) -> None:
    browser = Browser(page)
    await browser.sign_in()
    assert (await browser("GET", "/api/me", Host="attacker.example"))[0] == 403
    assert (await browser("GET", "/", Host="attacker.example:80"))[0] == 403
    assert (await browser("GET", "/api/me", Host=f"localhost:{page.port}"))[0] == 200


async def test_a_page_of_another_site_is_refused(page: Page) -> None:
    browser = Browser(page)
    csrf = await browser.sign_in()
    change = {"verb": "delete", "namespace": "default", "name": "x", "uid": "y"}
    status, answer, _ = await browser("POST", "/api/action", change, Origin="http://evil.example", X_CSRF_Token=csrf)
    assert (status, answer["error"]) == (403, "the request comes from a page of another site")
    assert (await browser("GET", "/api/me", Sec_Fetch_Site="cross-site"))[0] == 403
    assert (await browser("GET", "/api/me", Origin="null"))[0] == 403


async def test_a_change_needs_the_token_of_the_session(page: Page) -> None:
    browser = Browser(page)
    csrf = await browser.sign_in()
    change = {"verb": "delete", "namespace": "default", "name": "x", "uid": "y"}
    assert (await browser("POST", "/api/action", change))[0] == 403
    assert (await browser("POST", "/api/action", change, X_CSRF_Token="0" * 64))[0] == 403
    form = b"verb=delete&namespace=default"
    wrong = await browser("POST", "/api/action", form, Content_Type="text/plain", X_CSRF_Token=csrf)
    assert wrong[0] == 400
    status, answer, _ = await browser("POST", "/api/action", change, X_CSRF_Token=csrf)
    assert status == 503, "it passes, and no API server is there"
    assert "does not answer" in answer["error"]


async def test_the_form_of_a_file_signs_in(page: Page) -> None:
    browser = Browser(page)
    form = f"key={KEY}".encode()
    status, _, headers = await browser(
        "POST", "/session", form, Origin="null", Content_Type="application/x-www-form-urlencoded"
    )
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
    assert KEY not in headers["Set-Cookie"]
    assert (await browser("GET", "/api/me"))[0] == 200


async def test_files_outside_of_the_page_are_not_served(page: Page) -> None:
    browser = Browser(page)
    for path in ("/static/../site.py", "/static/%2e%2e/site.py", "/static/vendor/README.md", "/static/nothing.js"):
        assert (await browser("GET", path))[0] == 404, path


def _asking(**headers: str) -> Request:
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request("GET", "/api/me", Headers(fields), Body(0, lambda: None))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Known(Viewer):
    """Whoever the API server knows."""

    async def name(self) -> str | None:
        credential = await self.connection().credentials.current()
        return None if credential.authorization == "Bearer wrong" else "jane"


def _door(clock: Clock) -> TokenDoor:
    def viewer_of(credentials: StaticCredentials) -> Viewer:
        return Known(lambda: with_credentials(nowhere(), credentials), Curves(), may_change=False)

    return TokenDoor(viewer_of, clock)


async def test_a_session_has_its_own_token_and_ends() -> None:
    clock = Clock()
    door = _door(clock)
    assert await door.enter("wrong") is None
    assert await door.enter("  ") is None
    jane, joe = await door.enter("token-of-jane"), await door.enter("token-of-joe")
    assert jane is not None
    assert joe is not None
    assert jane[1] != joe[1]
    assert jane[0].csrf != joe[0].csrf
    assert "token-of-jane" not in jane[1]
    asking = _asking(Cookie=f"{door.cookie}={jane[1]}")
    assert door.viewer(asking) is jane[0]
    clock.now += SESSION_SECONDS + 1
    assert door.viewer(asking) is None, "nobody used it for so long"


async def test_tokens_that_a_proxy_sends_push_nobody_out() -> None:
    clock = Clock()
    door = _door(clock)
    jane = await door.enter("token-of-jane")
    assert jane is not None
    first = door.viewer(_asking(Authorization="Bearer from-the-proxy"))
    assert first is not None
    assert door.viewer(_asking(Authorization="bearer from-the-proxy")) is first
    for number in range(MOST_SESSIONS + 5):
        clock.now += 0.001
        door.viewer(_asking(Authorization=f"Bearer nonsense-{number}"))
    assert door.viewer(_asking(Cookie=f"{door.cookie}={jane[1]}")) is jane[0]
    assert len(door.viewers()) == MOST_SESSIONS + 1
