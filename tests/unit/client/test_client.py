"""The client against a real HTTP server on loopback that answers as a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from trainwright.api.resources import CONFIG_MAPS, JOB_SETS, PODS, TRAIN_JOBS
from trainwright.client import (
    AlreadyExists,
    Client,
    Conflict,
    Connection,
    DecodeError,
    DeleteOptions,
    Expired,
    HttpTransport,
    Invalid,
    NotFound,
    RequestError,
    TooManyRequests,
    UnknownOutcome,
    Unreachable,
)
from trainwright.client.credentials import Credential, StaticCredentials, TokenFile
from trainwright.client.errors import ApiError, ServerTimeout

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """One handler on a free port, and every request it saw."""

    def __init__(self) -> None:
        self.handler: Handler | None = None
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.raw_path, dict(request.headers), await request.read()))
        assert self.handler is not None
        return await self.handler(request)

    def answers(self, status: int, body: object, **headers: str) -> None:
        async def handler(request: web.Request) -> web.StreamResponse:
            text = body if isinstance(body, str) else json.dumps(body)
            return web.Response(status=status, text=text, content_type="application/json", headers=headers)

        self.handler = handler


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    it = Server()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", it.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    it.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield it
    await runner.cleanup()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    connection = Connection(server.url, StaticCredentials(Credential("Bearer secret")))
    async with Client.to(connection) as it:
        yield it


def failure(code: int, reason: str, message: str = "no", **details: object) -> dict[str, object]:
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


async def test_get_asks_for_the_object_by_its_path_with_the_token(server: Server, client: Client) -> None:
    server.answers(200, {"metadata": {"name": "a"}})
    assert await client.get(TRAIN_JOBS, "a", "ns") == {"metadata": {"name": "a"}}
    method, path, headers, _ = server.seen[0]
    assert (method, path) == ("GET", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/a")
    assert headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "../configmaps"])
async def test_a_name_that_would_reach_another_path_is_refused_before_it_is_sent(
    server: Server, client: Client, name: str
) -> None:
    with pytest.raises(RequestError):
        await client.get(CONFIG_MAPS, name, "ns")
    with pytest.raises(RequestError):
        await client.get(CONFIG_MAPS, "fine", name)
    assert server.seen == []


async def test_odd_characters_in_a_name_are_percent_encoded(server: Server, client: Client) -> None:
    server.answers(200, {})
    await client.get(CONFIG_MAPS, "a b?c#d:é", "ns")
    assert server.seen[0][1] == "/api/v1/namespaces/ns/configmaps/a%20b%3Fc%23d%3A%C3%A9"


async def test_an_object_of_a_namespaced_type_needs_its_namespace(client: Client) -> None:
    with pytest.raises(RequestError, match="needs a namespace"):
        await client.get(PODS, "a")


async def test_list_reads_page_after_page_and_gives_the_version_of_the_list(server: Server, client: Client) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        second = request.query.get("continue") == "next"
        assert request.query["limit"] == "2"
        items = [{"n": 3}] if second else [{"n": 1}, {"n": 2}]
        return web.json_response(
            {"metadata": {"resourceVersion": "7", "continue": "" if second else "next"}, "items": items}
        )

    server.handler = handler
    found = await client.list(PODS, page_size=2, label_selector="a=b,c!=d")
    assert [item["n"] for item in found.items or ()] == [1, 2, 3]
    assert found.resource_version == "7"
    assert "labelSelector=a%3Db%2Cc%21%3Dd" in server.seen[0][1]


class Thin(msgspec.Struct):
    class Meta(msgspec.Struct):
        name: str

    metadata: Meta


async def test_an_option_that_is_misspelt_is_refused_and_does_not_widen_the_selection(
    server: Server, client: Client
) -> None:
    with pytest.raises(TypeError, match="unknown options: lable_selector"):
        await client.list(PODS, lable_selector="a=b")  # type: ignore[call-overload]
    assert server.seen == []


async def test_objects_are_decoded_into_the_type_asked_for(server: Server, client: Client) -> None:
    server.answers(200, {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "x"}, "more": 1}]})
    found = await client.list(PODS, "ns", decode=Thin)
    assert [item.metadata.name for item in found.items or ()] == ["x"]


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Expired),
        (410, "Gone", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (504, "Timeout", ServerTimeout),
    ],
)
async def test_a_failure_status_becomes_its_error_with_the_servers_words(
    server: Server, client: Client, code: int, reason: str, error: type[ApiError]
) -> None:
    server.answers(code, failure(code, reason, "the server's words"))
    with pytest.raises(error, match="the server's words") as caught:
        await client.get(PODS, "a", "ns")
    assert caught.value.code == code
    assert type(caught.value) is error


async def test_a_504_is_an_unknown_outcome(server: Server, client: Client) -> None:
    server.answers(504, "<html>gateway</html>")
    with pytest.raises(UnknownOutcome, match="gateway"):
        await client.create(PODS, {}, "ns")


async def test_retry_after_is_told(server: Server, client: Client) -> None:
    server.answers(429, failure(429, "TooManyRequests"), **{"Retry-After": "30"})
    with pytest.raises(TooManyRequests) as caught:
        await client.get(PODS, "a", "ns")
    assert caught.value.retry_after == 30.0


async def test_a_missing_type_is_told_from_a_missing_object(server: Server, client: Client) -> None:
    server.answers(404, "404 page not found")
    with pytest.raises(NotFound) as no_type:
        await client.get(JOB_SETS, "a", "ns")
    server.answers(404, failure(404, "NotFound", name="a", kind="jobsets"))
    with pytest.raises(NotFound) as no_object:
        await client.get(JOB_SETS, "a", "ns")
    assert (no_type.value.is_missing_type, no_object.value.is_missing_type) == (True, False)


@pytest.mark.parametrize("body", ["<html>", '{"items": [', "[]", ""])
async def test_an_answer_that_is_not_what_was_asked_for_is_a_decode_error(
    server: Server, client: Client, body: str
) -> None:
    server.answers(200, body)
    with pytest.raises(DecodeError):
        await client.list(PODS)


async def test_nobody_listening_is_unreachable_and_nothing_was_sent() -> None:
    async with Client.to(Connection("http://127.0.0.1:1", StaticCredentials())) as client:
        with pytest.raises(Unreachable):
            await client.create(PODS, {}, "ns")


async def test_a_connection_that_breaks_after_a_write_is_an_unknown_outcome(server: Server, client: Client) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    server.handler = handler
    with pytest.raises(UnknownOutcome):
        await client.create(PODS, {"a": 1}, "ns")
    assert len(server.seen) == 1


async def test_no_answer_within_the_deadline_is_an_unknown_outcome(server: Server) -> None:
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    server.handler = handler
    from trainwright.client.requests import Request

    async with HttpTransport(Connection(server.url, StaticCredentials())) as transport:
        with pytest.raises(UnknownOutcome):
            await transport.send(Request("POST", "/x", body=b"{}"), deadline=0.05)
    release.set()


async def test_apply_is_forced_and_names_its_manager(server: Server, client: Client) -> None:
    server.answers(201, {})
    await client.apply(JOB_SETS, {"kind": "JobSet"}, name="a", namespace="ns", field_manager="trainer")
    method, path, headers, body = server.seen[0]
    assert (method, headers["Content-Type"]) == ("PATCH", "application/apply-patch+yaml")
    assert path.endswith("/jobsets/a?fieldManager=trainer&force=true")
    assert json.loads(body) == {"kind": "JobSet"}


async def test_delete_carries_its_preconditions_and_reach(server: Server, client: Client) -> None:
    server.answers(200, {})
    options = DeleteOptions(uid="u", resource_version="9", propagation="Foreground", grace_period_seconds=0)
    await client.delete(PODS, "a", "ns", options)
    assert json.loads(server.seen[0][3]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "9"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }


async def test_a_watch_gives_events_and_bookmarks_until_the_server_ends_it(server: Server, client: Client) -> None:
    large = "x" * 400_000  # over aiohttp's default limit for a line

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        for kind, version in (("ADDED", "2"), ("BOOKMARK", "3"), ("SOMETHING", "4")):
            thing = {"metadata": {"name": "a", "resourceVersion": version, "annotations": {"l": large}}}
            await response.write(json.dumps({"type": kind, "object": thing}).encode() + b"\n")
        return response

    server.handler = handler
    async with client.watch(PODS, resource_version="1", decode=Thin) as events:
        seen = [(event.type, event.resource_version, event.object) async for event in events]
    assert [(kind, version) for kind, version, _ in seen] == [("ADDED", "2"), ("BOOKMARK", "3"), ("SOMETHING", "4")]
    assert seen[0][2] is not None
    assert seen[0][2].metadata.name == "a"
    assert seen[1][2] is None


async def test_an_error_event_of_a_watch_is_raised_as_its_error(server: Server, client: Client) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        event = {"type": "ERROR", "object": failure(410, "Expired", "too old resource version")}
        return web.Response(body=json.dumps(event).encode() + b"\n")

    server.handler = handler
    async with client.watch(PODS, resource_version="1") as events:
        with pytest.raises(Expired, match="too old"):
            async for _ in events:
                pass


async def test_a_silent_watch_ends_at_its_idle_limit(server: Server, client: Client) -> None:
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"\n")
        await release.wait()
        return response

    server.handler = handler

    async def watch() -> None:
        async with client.watch(PODS, idle_seconds=0.05) as events:
            async for _ in events:
                pass

    with pytest.raises(UnknownOutcome):
        await watch()
    release.set()


async def test_after_a_401_the_token_is_read_again_and_the_request_repeated_once(
    server: Server, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer new":
            return web.json_response({"ok": True})
        token.write_text("new\n")
        return web.json_response(failure(401, "Unauthorized"), status=401)

    server.handler = handler
    async with Client.to(Connection(server.url, TokenFile(token))) as client:
        assert await client.raw("/version") == {"ok": True}
    assert [headers["Authorization"] for _, _, headers, _ in server.seen] == ["Bearer old", "Bearer new"]


async def test_log_lines_arrive_as_they_are_written(server: Server, client: Client) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.query["follow"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\nsec")
        await response.write(b"ond\nlast without newline")
        return response

    server.handler = handler
    async with client.logs("p", "ns", follow=True) as stream:
        assert [line async for line in stream.lines()] == [b"first", b"second", b"last without newline"]


async def test_warnings_of_the_server_are_passed_on(server: Server) -> None:
    server.answers(200, {}, Warning='299 - "podSpecOverrides is old; use \\"runtimePatches\\""')
    heard: list[str] = []
    async with Client.to(Connection(server.url, StaticCredentials()), on_warning=heard.append) as client:
        await client.get(PODS, "a", "ns")
    assert heard == ['podSpecOverrides is old; use "runtimePatches"']


async def test_the_servers_clock_is_learnt_from_its_dates(server: Server, client: Client) -> None:
    server.answers(200, {}, Date="Thu, 01 Jan 2026 00:00:00 GMT")
    await client.get(PODS, "a", "ns")
    assert abs(client.server_time.now() - 1767225600.5) < 2.0
