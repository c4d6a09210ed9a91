"""The server without a socket: behind the client's seam, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from selfcheck.leftovers import Tasks
from trainwright.api.resources import CONFIG_MAPS, NAMESPACES, PODS
from trainwright.client import Client, Forbidden, NotFound, UnknownOutcome, Unreachable
from trainwright.client.requests import Request
from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.inprocess import InProcessTransport, Pipe, PipeStream
from trainwright.testing.virtualserver import VirtualServer


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def watched(client: Client, count: int, **options: Any) -> list[tuple[str, str]]:
    async with client.watch(CONFIG_MAPS, "default", **options) as events:
        found = []
        async for event in events:
            found.append((event.type, (event.object or {}).get("metadata", {}).get("name", "")))
            if len(found) == count:
                return found
    return found


async def test_what_is_created_is_read_listed_watched_and_deleted(server: VirtualServer, tasks: Tasks) -> None:
    made = await server.client.create(CONFIG_MAPS, config_map("a", x="1"), "default")
    assert (await server.client.get(CONFIG_MAPS, "a", "default"))["data"] == {"x": "1"}
    listed = await server.client.list(CONFIG_MAPS, "default")
    assert [item["metadata"]["uid"] for item in listed.items or ()] == [made["metadata"]["uid"]]
    watching = tasks.start(watched(server.client, 3, resource_version=listed.resource_version))
    await server.clock.settle()
    await server.client.create(CONFIG_MAPS, config_map("b"), "default")
    await server.client.patch(CONFIG_MAPS, {"data": {"y": "2"}}, name="b", namespace="default")
    await server.client.delete(CONFIG_MAPS, "b", "default")
    assert await watching == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
    with pytest.raises(NotFound):
        await server.client.get(CONFIG_MAPS, "b", "default")
    assert server.get(CONFIG_MAPS, "a") is not None
    assert server.get(CONFIG_MAPS, "b") is None


async def test_times_are_those_of_the_virtual_clock(server: VirtualServer) -> None:
    await server.clock.advance(3600)
    made = await server.client.create(CONFIG_MAPS, config_map("a", x="1"), "default")
    assert made["metadata"]["creationTimestamp"] == "2023-11-14T23:13:20Z"
    assert made["metadata"]["managedFields"][0]["time"] == "2023-11-14T23:13:20Z"
    answer = await server.client.transport.send(Request("GET", "/version"), deadline=1.0)
    assert answer.headers["date"] == "Tue, 14 Nov 2023 23:13:20 GMT"


async def test_an_age_grows_with_the_clock(server: VirtualServer) -> None:
    await server.client.create(CONFIG_MAPS, config_map("a"), "default")
    await server.clock.advance(7200)
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    request = Request("GET", "/api/v1/namespaces/default/configmaps", accept=accept)
    answer = await server.client.transport.send(request, deadline=1.0)
    assert b'"cells":["a",0,"120m"]' in answer.body


async def test_a_watch_ends_when_its_time_is_up(server: VirtualServer, tasks: Tasks) -> None:
    watching = tasks.start(watched(server.client, 100, timeout_seconds=30))
    await server.clock.advance(29)
    assert not watching.done()
    await server.clock.advance(1)
    assert await watching == []


async def test_bookmarks_come_every_minute(server: VirtualServer, tasks: Tasks) -> None:
    watching = tasks.start(watched(server.client, 2, timeout_seconds=600))
    await server.clock.advance(59)
    await server.client.create(CONFIG_MAPS, config_map("a"), "default")
    await server.clock.advance(1)
    assert await watching == [("ADDED", "a"), ("BOOKMARK", "")]


async def test_a_stream_with_nothing_on_it_is_given_up(server: VirtualServer, tasks: Tasks) -> None:
    request = Request("GET", "/api/v1/configmaps", (("watch", "1"),))

    async def read() -> None:
        async with server.client.transport.stream(request, deadline=5.0, idle=20.0) as stream:
            async for _ in stream.lines():
                raise AssertionError("nothing was written")

    reading = tasks.start(read())
    await server.clock.advance(21)
    with pytest.raises(UnknownOutcome, match="nothing came for 20 s"):
        await reading


async def test_a_reader_that_leaves_leaves_nothing_behind(server: VirtualServer) -> None:
    before = asyncio.all_tasks()
    async with server.client.watch(CONFIG_MAPS, "default"):
        await server.clock.settle()
        assert len(server.server.state.table("configmaps").watchers) == 1
    assert not server.server.state.table("configmaps").watchers
    assert asyncio.all_tasks() == before


async def test_an_answer_that_does_not_come_in_time_is_an_unknown_outcome(server: VirtualServer, tasks: Tasks) -> None:
    # A list that must be newer than anything there is waits for three seconds.
    request = Request("GET", "/api/v1/configmaps", (("resourceVersion", "1000000"),))
    asking = tasks.start(server.client.transport.send(request, deadline=2.0))
    await server.clock.advance(2.0)
    with pytest.raises(UnknownOutcome, match="no answer within 2 s"):
        await asking
    patient = tasks.start(server.client.transport.send(request, deadline=10.0))
    await server.clock.advance(3.0)
    assert (await patient).status == 504


async def test_garbage_is_collected_without_real_time(server: VirtualServer) -> None:
    owner = await server.client.create(CONFIG_MAPS, config_map("owner"), "default")
    child = config_map("child")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [reference]
    await server.client.create(CONFIG_MAPS, child, "default")
    await server.client.delete(CONFIG_MAPS, "owner", "default")
    assert server.get(CONFIG_MAPS, "child") is not None
    await server.clock.advance(0.1)
    assert server.get(CONFIG_MAPS, "child") is None


async def test_a_namespace_goes_with_its_contents(server: VirtualServer) -> None:
    await server.client.create(NAMESPACES, {"metadata": {"name": "n"}})
    await server.client.create(CONFIG_MAPS, config_map("a"), "n")
    await server.client.delete(NAMESPACES, "n")
    await server.clock.advance(1.0)
    assert server.get(NAMESPACES, "n") is None
    assert server.list(CONFIG_MAPS, "n") == []


async def test_without_a_good_token_there_is_no_access(server: VirtualServer) -> None:
    anonymous = Client(InProcessTransport(server.server, token=""))
    with pytest.raises(Forbidden, match='User "system:anonymous" cannot list resource "pods"'):
        await anonymous.list(PODS, "default")
    answer = await InProcessTransport(server.server, token="bad").send(Request("GET", "/version"), deadline=1.0)
    assert answer.status == 401


@pytest.mark.parametrize(
    "path", ["/api/v1/nothings", "/apis/none.example.com/v1/things", "/api/v1/namespaces/default/configmaps/none"]
)
async def test_permission_comes_first_so_that_a_404_never_tells_what_there_is(server: VirtualServer, path: str) -> None:
    guest = InProcessTransport(server.server, token="")
    answer = await guest.send(Request("GET", path), deadline=1.0)
    assert answer.status == 403
    assert b'User \\"system:anonymous\\" cannot' in answer.body
    assert (await server.client.transport.send(Request("GET", path), deadline=1.0)).status == 404


async def test_a_restarted_server_has_what_was_stored_and_watches_end(server: VirtualServer, tasks: Tasks) -> None:
    await server.client.create(CONFIG_MAPS, config_map("a"), "default")
    watching = tasks.start(watched(server.client, 100))
    await server.clock.settle()
    old = server.server
    await server.restart()
    assert await watching == [("ADDED", "a")]
    assert (await server.client.get(CONFIG_MAPS, "a", "default"))["metadata"]["name"] == "a"
    with pytest.raises(Unreachable, match="the server is not running"):
        await InProcessTransport(old).send(Request("GET", "/version"), deadline=1.0)


async def test_two_servers_share_nothing() -> None:
    async with VirtualServer() as one, VirtualServer() as two:
        await one.client.create(CONFIG_MAPS, config_map("a"), "default")
        assert two.list(CONFIG_MAPS) == []


async def test_a_watcher_that_does_not_read_is_cut_off(server: VirtualServer) -> None:
    request = Request("GET", "/api/v1/configmaps", (("watch", "1"),))
    async with server.client.transport.stream(request, deadline=5.0, idle=20.0) as stream:
        for number in range(40):
            await server.client.create(CONFIG_MAPS, config_map(f"big-{number}", a="x" * 300_000), "default")
        assert not server.server.state.table("configmaps").watchers
        with pytest.raises(UnknownOutcome, match="the connection broke"):
            await stream.read()
    assert (await server.client.get(CONFIG_MAPS, "big-29", "default"))["metadata"]["name"] == "big-29"


async def test_lines_are_put_together_from_pieces() -> None:
    pipe = Pipe(VirtualClock(), 10.0, "/")
    for piece in (b"on", b"e\ntw", b"o\n\nthree\nfo", b"ur"):
        pipe.write(piece)
    pipe.end()
    assert [line async for line in PipeStream(200, {}, pipe).lines()] == [b"one", b"two", b"three", b"four"]


async def test_a_sender_that_can_wait_waits_for_the_reader(tasks: Tasks) -> None:
    clock = VirtualClock()
    pipe = Pipe(clock, 10.0, "/")
    sent: list[int] = []

    async def send() -> None:
        for number in range(5):
            await pipe.send(b"x" * 50_000)
            sent.append(number)

    sending = tasks.start(send())
    await clock.settle()
    assert sent == [0, 1]
    await pipe.read()
    await clock.settle()
    assert sent == [0, 1, 2]
    pipe.leave()
    with pytest.raises(ConnectionResetError):
        await sending
