"""The past: kept for five minutes, then answered with 410; events go after an hour."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from selfcheck.leftovers import Tasks
from trainwright.api.resources import CONFIG_MAPS
from trainwright.client import Expired
from trainwright.client.requests import MERGE_PATCH, Request
from trainwright.client.transport import Answer
from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.storage.table import Event
from trainwright.testing.virtualserver import VirtualServer

PATH = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"


async def ask(server: VirtualServer, request: Request) -> Answer:
    return await server.client.transport.send(request, deadline=5.0)


async def make(server: VirtualServer, *names: str) -> list[str]:
    """The versions of new ConfigMaps."""
    made = [await server.client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default") for name in names]
    return [obj["metadata"]["resourceVersion"] for obj in made]


async def seen(server: VirtualServer, last: str, **options: Any) -> list[str]:
    """The names that a watch sees, up to `last`."""
    names: list[str] = []
    async with server.client.watch(CONFIG_MAPS, "default", **options) as events:
        async for event in events:
            if event.type != "BOOKMARK":
                names.append((event.object or {})["metadata"]["name"])
            if names[-1:] == [last]:
                break
    return names


class Slow:
    """A watcher that it takes 20 ms to tell: what comes after it gathers for 50 ms."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock

    def deliver(self, events: list[Event]) -> None:
        self.clock.spend(0.02)

    def close(self) -> None: ...


async def test_a_watch_from_a_forgotten_version_is_expired(server: VirtualServer) -> None:
    version, *_ = await make(server, "a", "b", "c")
    await server.clock.advance(290)
    assert await seen(server, "c", resource_version=version) == ["b", "c"]
    await server.clock.advance(40)
    with pytest.raises(Expired):
        await seen(server, "c", resource_version=version)


async def test_a_forgotten_version_is_told_as_one_error_event_in_a_good_stream(server: VirtualServer) -> None:
    version, *_ = await make(server, "a", "b")
    await server.clock.advance(330)
    request = Request("GET", PATH, (("watch", "true"), ("resourceVersion", version)))
    async with server.client.transport.stream(request, deadline=5.0, idle=5.0) as stream:
        assert stream.status == 200
        [event] = [json.loads(line) async for line in stream.lines()]
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_current_watch_survives_compaction(server: VirtualServer, tasks: Tasks) -> None:
    await make(server, "a")
    watching = tasks.start(seen(server, "b"))
    await server.clock.advance(900)
    await make(server, "b")
    assert await watching == ["a", "b"]


async def test_a_page_of_a_forgotten_list_is_expired(server: VirtualServer) -> None:
    await make(server, "a", "b", "c")
    first = await ask(server, Request("GET", PATH, (("limit", "1"),)))
    rest = Request("GET", PATH, (("limit", "1"), ("continue", json.loads(first.body)["metadata"]["continue"])))
    assert (await ask(server, rest)).status == 200
    await make(server, "d")
    await server.clock.advance(330)
    answer = await ask(server, rest)
    assert (answer.status, json.loads(answer.body)["reason"]) == (410, "Expired")


async def test_events_go_an_hour_after_their_last_write(server: VirtualServer) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    body = msgspec.json.encode({"metadata": {"name": "e"}, "involvedObject": about})
    event = Request("GET", f"{EVENTS}/e")
    assert (await ask(server, Request("POST", EVENTS, (), body))).status == 201
    await server.clock.advance(1800)
    assert (await ask(server, Request("PATCH", event.path, (), b'{"message":"again"}', MERGE_PATCH))).status == 200
    await server.clock.advance(3500)
    assert (await ask(server, event)).status == 200
    await server.clock.advance(130)
    assert (await ask(server, event)).status == 404


async def test_an_event_is_turned_into_a_line_once_for_all_watchers(server: VirtualServer, tasks: Tasks) -> None:
    watching = [tasks.start(seen(server, "a")) for _ in range(3)]
    await server.clock.settle()
    await make(server, "a")
    assert await asyncio.gather(*watching) == [["a"]] * 3
    [event] = server.server.state.table("configmaps").events
    assert len(event.lines) == 1


async def test_what_still_gathers_is_neither_missed_nor_doubled_by_a_watcher_that_joins(
    server: VirtualServer, tasks: Tasks
) -> None:
    table = server.server.state.table("configmaps")
    table.watchers[Slow(server.clock)] = None
    early = tasks.start(seen(server, "after"))
    await server.clock.settle()
    version, _ = await make(server, "told", "gathering")
    assert [event.current.key.name for event in table.untold] == ["gathering"]
    late = tasks.start(seen(server, "after", resource_version=version))
    await server.clock.settle()
    await make(server, "after")
    await server.clock.advance(1)
    assert await early == ["told", "gathering", "after"]
    assert await late == ["gathering", "after"]


async def test_a_bookmark_comes_after_all_that_it_covers(server: VirtualServer, tasks: Tasks) -> None:
    table = server.server.state.table("configmaps")
    kinds: list[str] = []

    async def watch() -> None:
        async with server.client.watch(CONFIG_MAPS, "default") as events:
            async for event in events:
                kinds.append(event.type)

    tasks.start(watch())
    await server.clock.advance(59.96)
    table.watchers[Slow(server.clock)] = None
    await make(server, "told", "gathering")
    assert kinds == ["ADDED"]
    await server.clock.advance(0.03)  # the bookmark is due at 60.00, what gathers at 60.03
    assert kinds == ["ADDED", "ADDED", "BOOKMARK"]
