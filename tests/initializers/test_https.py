"""`https://` against a web server that can fail in every way a network does."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from initializers.fileserver import Answer, Cut, FileServer, Request, file_server, noise
from initializers.runs import fetch, tree
from trainwright.initializers.errors import Changed, Damaged, Misconfigured, Missing, NotPermitted, Unreachable
from trainwright.testing.certificates import Authority

MIB = 2**20
ON_THE_WAY = 3 * MIB  # what the client's buffers hold when a connection is cut is lost with it


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_a_file_arrives_and_a_second_run_fetches_nothing(server: FileServer, target: Path) -> None:
    content = noise(3 * MIB)
    server.put("/data/train.bin", content)
    said = await fetch(f"{server.url}/data/train.bin", target)
    assert tree(target) == {"train.bin": content}
    assert "1 file with 3.0 MiB" in said
    server.forget()
    assert "nothing had to be fetched" in await fetch(f"{server.url}/data/train.bin", target)
    assert server.sent["/data/train.bin"] == 1  # the byte that asks for size and version


async def test_an_empty_file_is_a_file(server: FileServer, target: Path) -> None:
    server.put("/empty", b"")
    await fetch(f"{server.url}/empty", target)
    assert tree(target) == {"empty": b""}


async def test_a_changed_file_is_fetched_again(server: FileServer, target: Path) -> None:
    for content in (b"old", b"new"):
        server.put("/f", content)
        await fetch(f"{server.url}/f", target)
        assert tree(target) == {"f": content}


async def test_a_file_changed_in_the_target_is_fetched_again(server: FileServer, target: Path) -> None:
    server.put("/f", b"right")
    await fetch(f"{server.url}/f", target)
    (target / "f").write_bytes(b"wrong")
    await fetch(f"{server.url}/f", target)
    assert tree(target) == {"f": b"right"}


async def test_cut_connections_cost_only_what_was_on_the_way(server: FileServer, target: Path) -> None:
    content = noise(16 * MIB)
    # The first request asks for one byte and gets it.
    server.put("/f", content, Cut(10), Cut(6 * MIB), Cut(6 * MIB), Answer(503, {"Retry-After": "0"}))
    said = await fetch(f"{server.url}/f", target)
    assert tree(target) == {"f": content}
    _, first, second, refused, last = (request.first_byte for request in server.asked("/f"))
    assert (first, refused) == (0, last)
    assert 6 * MIB - ON_THE_WAY <= second <= 6 * MIB
    assert second + 6 * MIB - ON_THE_WAY <= last <= second + 6 * MIB
    assert server.sent["/f"] <= len(content) + 2 * ON_THE_WAY
    assert "the connection was cut; trying again" in said


@pytest.mark.parametrize("how", [{"ranges": False}, {"validator": False}, {"ranges": False, "length": False}])
async def test_without_ranges_version_or_length_a_cut_begins_from_the_start(
    how: dict[str, bool], server: FileServer, target: Path
) -> None:
    content = noise(2 * MIB)
    server.put("/f", content, Cut(MIB), Cut(MIB), Cut(MIB), **how)  # the first request looks at the headers only
    await fetch(f"{server.url}/f", target)
    assert tree(target) == {"f": content}
    assert {request.first_byte for request in server.asked("/f")} == {0}


async def test_a_server_that_always_cuts_at_the_same_place_is_given_up(server: FileServer, target: Path) -> None:
    server.put("/f", noise(2 * MIB), *[Cut(MIB)] * 1000, ranges=False)
    with pytest.raises(Unreachable, match="the connection was cut; given up after 1 s"):
        await fetch(f"{server.url}/f", target, retry_seconds=1)


async def test_a_file_that_changes_between_two_ranges_is_taken_whole(server: FileServer, target: Path) -> None:
    old, new = noise(12 * MIB, 1), noise(12 * MIB, 2)
    server.put("/f", old, Cut(10), Cut(9 * MIB))

    def replace(request: Request) -> Answer | None:
        if request.first_byte > 0:
            server.files["/f"].content = new
        return None

    server.routes.append(replace)
    said = await fetch(f"{server.url}/f", target)
    assert tree(target) == {"f": new}
    assert "it has changed since it was listed; listing it again" in said


async def test_a_file_that_changes_all_the_time_is_given_up(server: FileServer, target: Path) -> None:
    server.put("/f", noise(MIB))

    def change(request: Request) -> Answer | None:
        content = server.files["/f"].content
        server.files["/f"].content = content + b"more"
        return None

    server.routes.append(change)
    with pytest.raises(Changed):
        await fetch(f"{server.url}/f", target)
    assert tree(target) == {}


@pytest.mark.parametrize("header", ["Repr-Digest: sha-256=:{}:", "Digest: SHA-256={}", "Digest: unixsum=1,sha-256={}"])
async def test_a_digest_of_the_server_is_checked(header: str, server: FileServer, target: Path) -> None:
    name, _, value = header.partition(": ")
    for content, promised in ((b"as promised", b"as promised"), (b"something else", b"as promised")):
        digest = base64.b64encode(hashlib.sha256(promised).digest()).decode()
        server.put("/f", content, headers={name: value.format(digest)})
        if content == promised:
            await fetch(f"{server.url}/f", target)
            assert tree(target) == {"f": content}
        else:
            with pytest.raises(Damaged, match="the sha256 is"):
                await fetch(f"{server.url}/f", target / "other")
            assert tree(target / "other") == {}


async def test_a_checksum_in_the_address_is_checked(server: FileServer, target: Path) -> None:
    server.put("/f", b"content")
    await fetch(f"{server.url}/f#sha256={sha256(b'content')}", target)
    assert tree(target) == {"f": b"content"}
    with pytest.raises(Damaged, match="The file was not kept"):
        await fetch(f"{server.url}/f#sha256={sha256(b'other')}", target)
    assert tree(target) == {"f": b"content"}  # what was there before stays
    for fragment in ("sha256=123", "crc=0", "sha256"):
        with pytest.raises(Misconfigured, match="is no checksum"):
            await fetch(f"{server.url}/f#{fragment}", target)


async def test_with_a_checksum_even_a_server_without_versions_is_resumed(server: FileServer, target: Path) -> None:
    content = noise(12 * MIB)
    server.put("/f", content, Cut(10), Cut(9 * MIB), validator=False)
    await fetch(f"{server.url}/f#sha256={sha256(content)}", target)
    assert tree(target) == {"f": content}
    assert server.asked("/f")[-1].first_byte >= 9 * MIB - ON_THE_WAY


async def test_the_token_goes_to_the_origin_alone(server: FileServer, authority: Authority, target: Path) -> None:
    with file_server(authority) as elsewhere:
        elsewhere.put("/f", b"content")
        server.put("/f", b"", *[Answer(302, {"Location": f"{elsewhere.url}/f"})] * 2)
        await fetch(f"{server.url}/f", target, ACCESS_TOKEN="secret")
        assert tree(target) == {"f": b"content"}
        assert {request.headers.get("Authorization") for request in server.requests} == {"Bearer secret"}
        assert {request.headers.get("Authorization") for request in elsewhere.requests} == {None}


async def test_a_redirect_to_http_is_not_followed(server: FileServer, target: Path) -> None:
    with file_server() as plain:
        plain.put("/f", b"content")
        server.put("/f", b"", Answer(302, {"Location": f"{plain.url}/f"}))
        with pytest.raises(Unreachable, match="which is not https"):
            await fetch(f"{server.url}/f", target)
        assert not plain.requests


@pytest.mark.parametrize(
    ("status", "error", "sentence"),
    [
        (401, NotPermitted, "refuses it .401.: set ACCESS_TOKEN"),
        (403, NotPermitted, "refuses it .403."),
        (404, Missing, "there is no such file .404.: check the address"),
        (400, Unreachable, "the server answered 400"),
    ],
)
async def test_refusals_say_what_to_do(
    status: int, error: type[Exception], sentence: str, server: FileServer, target: Path
) -> None:
    server.put("/f", b"", Answer(status, {}, b"<html>secret page</html>"))
    with pytest.raises(error, match=sentence) as raised:
        await fetch(f"{server.url}/f?signature=secret", target)
    assert "secret" not in str(raised.value)


async def test_a_network_that_is_away_is_waited_for(server: FileServer, target: Path) -> None:
    server.put("/f", b"content", Answer(502), Answer(500), Answer(429, {"Retry-After": "0"}))
    said = await fetch(f"{server.url}/f", target)
    assert tree(target) == {"f": b"content"}
    assert "answered 502 Bad Gateway; trying again for 5 s" in said


async def test_nobody_there_is_given_up_after_the_deadline(target: Path) -> None:
    with file_server() as closed:
        address = closed.url.replace("http", "https")
    with pytest.raises(Unreachable, match=r"Connect call failed|[Cc]onnection refused"):
        await fetch(f"{address}/f", target, retry_seconds=0.5)


async def test_a_server_that_is_not_trusted_is_not_asked_again(
    server: FileServer, tmp_path: Path, target: Path
) -> None:
    with file_server(Authority(tmp_path / "stranger")) as stranger:
        stranger.put("/f", b"content")
        with pytest.raises(Unreachable, match=r"certificate is not trusted .* set SSL_CERT_FILE"):
            await fetch(f"{stranger.url}/f", target)


async def test_names_in_addresses_stay_in_the_target(server: FileServer, target: Path) -> None:
    server.put("/a/../../evil", b"content")
    with pytest.raises(Exception, match=r"leaves its directory|names no file"):
        await fetch(f"{server.url}/a/..%2F..%2Fevil", target)
    assert not list(target.parent.rglob("evil"))
