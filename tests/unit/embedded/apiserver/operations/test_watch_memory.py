"""Watchers that do not read cost little, all together, and are cut off; those that read lose nothing."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import msgspec

from trainwright.api.resources import Resource
from trainwright.client.requests import Request
from trainwright.testing.virtualserver import VirtualServer

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
MUTE = 200
PATH = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, size: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "x" * size}}


def request(**query: str) -> Request:
    return Request("GET", PATH, query=(("watch", "1"), *query.items()))


class Mute:
    """Watchers that take the head of the answer and then nothing."""

    def __init__(self, server: VirtualServer, **query: str) -> None:
        self.server = server
        self.query = query
        self.tasks: list[asyncio.Task[None]] = []

    async def begin(self, count: int) -> None:
        self.tasks = [asyncio.create_task(self._hold()) for _ in range(count)]
        await self.server.clock.settle()

    async def _hold(self) -> None:
        async with self.server.admin.transport.stream(request(**self.query), deadline=5.0, idle=1e6):
            await asyncio.Event().wait()

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_two_hundred_mute_watchers_share_what_waits_for_them(server: VirtualServer) -> None:
    mute = Mute(server, resourceVersion=str(server.server.state.version))
    await mute.begin(MUTE)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(100):
            await server.admin.create(CONFIG_MAPS, config_map(f"c{number}", 60_000), "default")
        assert len(server.server.state.table("configmaps").watchers) == MUTE
        assert tracemalloc.get_traced_memory()[0] < 60 * 2**20  # 100 objects, and 64 KB for each watcher
    finally:
        tracemalloc.stop()
    await server.clock.advance(61)
    assert not server.server.state.table("configmaps").watchers  # they took nothing for a minute
    await mute.end()


async def test_a_hundred_mute_watchers_of_a_long_list_hold_no_copies_of_it(server: VirtualServer) -> None:
    for number in range(200):
        await server.admin.create(CONFIG_MAPS, config_map(f"c{number}", 20_000), "default")
    gc.collect()
    tracemalloc.start()
    try:
        mute = Mute(server, resourceVersion="0")
        await mute.begin(100)
        assert tracemalloc.get_traced_memory()[0] < 40 * 2**20  # of 400 MB if each had its own
    finally:
        tracemalloc.stop()
    await server.clock.advance(61)
    assert not server.server.state.table("configmaps").watchers
    await mute.end()


async def test_who_reads_slowly_sees_the_list_and_then_every_event_in_order(server: VirtualServer) -> None:
    for number in range(50):
        await server.admin.create(CONFIG_MAPS, config_map(f"c{number:03}", 20_000), "default")
    seen: list[str] = []
    query = {"resourceVersion": "0", "allowWatchBookmarks": "true", "timeoutSeconds": "120"}
    async with server.admin.transport.stream(request(**query), deadline=5.0, idle=1e6) as stream:
        for number in range(50, 100):
            await server.admin.create(CONFIG_MAPS, config_map(f"c{number:03}", 20_000), "default")
        await server.clock.settle()

        async def read() -> None:
            async for line in stream.lines():
                event = msgspec.json.decode(line)
                if event["type"] != "BOOKMARK":
                    seen.append(event["object"]["metadata"]["name"])

        reading = asyncio.create_task(read())
        await server.clock.advance(121)
        await reading
    assert seen == [f"c{number:03}" for number in range(100)]
