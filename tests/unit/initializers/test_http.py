"""One request: proxies, credentials of others, and addresses that are none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yarl import URL

from initializers.fileserver import Answer, FileServer, file_server
from trainwright.clock import SystemClock
from trainwright.initializers import settings as initializer_settings
from trainwright.initializers.errors import Misconfigured, Unreachable
from trainwright.initializers.http import Http, shown, whole
from trainwright.initializers.schemes import source_of


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http() as opened:
        yield opened


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as files:
        files.put("/f", b"content")
        yield files


async def body_of(http: Http, url: str, **private: str) -> bytes:
    async with http.ask(url, private=private) as response:
        return await whole(response, 100)


async def test_the_proxy_of_the_environment_is_used_unless_it_is_exempt(
    http: Http, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert await body_of(http, "http://host.invalid/f") == b"content"
    assert server.requests[-1].headers["Host"] == "host.invalid"
    assert await body_of(http, f"{server.url}/f") == b"content"
    assert server.requests[-1].headers["Host"].startswith("127.0.0.1")


async def test_credentials_of_other_programs_are_not_sent(
    http: Http, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login git password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    await body_of(http, f"{server.url}/f")
    await body_of(http, f"{server.url}/f", Authorization="Bearer ours")
    assert [request.headers.get("Authorization") for request in server.requests] == [None, "Bearer ours"]


@pytest.mark.parametrize("location", ["http://[::1", "http://host:99999/", "ftp://host/f"])
async def test_a_redirect_to_nowhere_is_said(location: str, http: Http, server: FileServer) -> None:
    server.put("/f", b"", Answer(302, {"Location": location}))
    with pytest.raises((Unreachable, Misconfigured)):
        await body_of(http, f"{server.url}/f")


async def test_redirects_in_a_circle_end(http: Http, server: FileServer) -> None:
    server.put("/f", b"", *[Answer(307, {"Location": "/f"})] * 100)
    with pytest.raises(Unreachable, match="more than 10 redirects"):
        await body_of(http, f"{server.url}/f")


async def test_an_answer_that_should_be_short_is_not_read_for_ever(http: Http, server: FileServer) -> None:
    server.put("/f", bytes(1000))
    with pytest.raises(Unreachable, match="longer than 100 bytes"):
        await body_of(http, f"{server.url}/f")


def test_secrets_in_addresses_are_not_shown() -> None:
    assert shown(URL("https://user:password@host/path?token=secret#fragment")) == "https://host/path"


@settings(deadline=None)
@example("file://", "/a%00b")
@example("hf://", "a@")
@given(
    st.sampled_from(["https://", "s3://", "file://", "hf://", ""]),
    st.text() | st.text("/:@[]#?%.0a ", max_size=12),
)
def test_any_uri_is_a_source_or_a_sentence(scheme: str, rest: str) -> None:
    try:
        given = initializer_settings.settings("dataset", {}, uri=f"{scheme}{rest}", target=Path("/nonexistent/target"))
        source_of(given, Http(), SystemClock())
    except Misconfigured as error:
        message = str(error)
    else:
        message = ""
    assert message == "" or message.isprintable()
