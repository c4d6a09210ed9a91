"""Watches over real connections: readers that stall or leave, and a server that ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from trainwright.embedded.apiserver import ApiServer
from waiting import until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def make(http: Any, name: str, size: int = 1) -> None:
    status, _ = await http("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"a": "x" * size}})
    assert status == 201


def watch(http: Any, server: ApiServer) -> Any:
    headers = {"Authorization": f"Bearer {server.token}"}
    return http.session.get(f"{server.url}{CONFIG_MAPS}?watch=true", headers=headers)


async def test_a_watcher_that_does_not_read_is_cut_off(http: Any, server: ApiServer) -> None:
    watchers = server.server.state.table("configmaps").watchers
    async with watch(http, server) as answer:
        answer.connection.transport.pause_reading()
        for number in range(100):
            await make(http, f"big-{number}", size=300_000)
            if not watchers:
                break
        assert not watchers
    assert (await http("GET", f"{CONFIG_MAPS}/big-0"))[0] == 200


async def test_an_event_reaches_every_watcher_as_the_same_bytes(http: Any, server: ApiServer) -> None:
    async with watch(http, server) as one, watch(http, server) as two:
        await make(http, "a")
        lines = [await asyncio.wait_for(answer.content.readline(), 5) for answer in (one, two)]
    assert lines[0] == lines[1]
    assert json.loads(lines[0])["object"]["metadata"]["name"] == "a"


async def test_a_reader_that_leaves_ends_its_watch(http: Any, server: ApiServer) -> None:
    table = server.server.state.table("configmaps")
    async with watch(http, server) as answer:
        assert answer.status == 200
        await until("the watch to begin", lambda: len(table.watchers) == 1)
        answer.close()
    await until("the watch to end", lambda: not table.watchers)


async def test_a_watch_ends_in_order_when_the_server_does(tmp_path: Path) -> None:
    import ssl

    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with ApiServer(tmp_path / "state") as server:
            context = ssl.create_default_context(cafile=server.ca_file)
            headers = {"Authorization": f"Bearer {server.token}"}
            url = f"{server.url}{CONFIG_MAPS}?watch=true"
            answer = await session.get(url, headers=headers, ssl=context)
            assert answer.status == 200
        assert await asyncio.wait_for(answer.content.read(), 5) == b""
