"""The past: compaction answers 410, slow watchers are cut off, events expire."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from trainwright.embedded.apiserver import ApiServer
from trainwright.embedded.apiserver.controllers import upkeep
from trainwright.embedded.apiserver.operations import watching
from trainwright.embedded.apiserver.storage import state

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def make(http: Any, *names: str, size: int = 1) -> list[Any]:
    made = []
    for name in names:
        status, answer = await http("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"a": "x" * size}})
        assert status == 201
        made.append(answer)
    return made


async def test_a_watch_from_a_forgotten_version_gets_one_error_event(
    http: Any, server: ApiServer, monkeypatch: Any
) -> None:
    first, *_ = await make(http, "a", "b", "c")
    monkeypatch.setattr(state, "HISTORY_SECONDS", -1.0)
    server.state.compact()
    version = first["metadata"]["resourceVersion"]
    async with http.session.get(
        f"{server.url}{CONFIG_MAPS}?watch=true&resourceVersion={version}",
        headers={"Authorization": f"Bearer {server.token}"},
    ) as answer:
        assert answer.status == 200
        event = json.loads(await answer.content.readline())
        assert await answer.content.read() == b""
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_current_watch_survives_compaction(http: Any, server: ApiServer, monkeypatch: Any) -> None:
    await make(http, "a")
    async with http.session.get(
        f"{server.url}{CONFIG_MAPS}?watch=true&resourceVersion={server.state.version}",
        headers={"Authorization": f"Bearer {server.token}"},
    ) as answer:
        monkeypatch.setattr(state, "HISTORY_SECONDS", -1.0)
        server.state.compact()
        await make(http, "b")
        event = json.loads(await asyncio.wait_for(answer.content.readline(), 5))
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_a_page_of_a_forgotten_list_is_expired(http: Any, server: ApiServer, monkeypatch: Any) -> None:
    await make(http, "a", "b", "c")
    _, page = await http("GET", f"{CONFIG_MAPS}?limit=1")
    await make(http, "d")
    monkeypatch.setattr(state, "HISTORY_SECONDS", -1.0)
    server.state.compact()
    status, answer = await http("GET", f"{CONFIG_MAPS}?limit=1&continue={page['metadata']['continue']}")
    assert (status, answer["reason"]) == (410, "Expired")


async def test_a_watcher_that_does_not_read_is_cut_off(http: Any, server: ApiServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(watching, "MAX_BUFFER", 200_000)
    request = http.session.get(
        f"{server.url}{CONFIG_MAPS}?watch=true", headers={"Authorization": f"Bearer {server.token}"}
    )
    async with request as answer:
        answer.connection.transport.pause_reading()
        for number in range(60):
            await make(http, f"big-{number}", size=300_000)
            if not server.state.table("configmaps").watchers:
                break
        assert not server.state.table("configmaps").watchers
    assert (await http("GET", f"{CONFIG_MAPS}/big-0"))[0] == 200


async def test_events_go_an_hour_after_their_last_write(http: Any, server: ApiServer) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    path = "/api/v1/namespaces/default/events"
    assert (await http("POST", path, {"metadata": {"name": "e"}, "involvedObject": about}))[0] == 201
    await upkeep.expire_events(server.api, time.time() + 3500)
    assert (await http("GET", f"{path}/e"))[0] == 200
    await upkeep.expire_events(server.api, time.time() + 3700)
    assert (await http("GET", f"{path}/e"))[0] == 404


async def test_an_event_reaches_every_watcher_as_the_same_bytes(http: Any, server: ApiServer) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    url = f"{server.url}{CONFIG_MAPS}?watch=true"
    async with http.session.get(url, headers=headers) as one, http.session.get(url, headers=headers) as two:
        await make(http, "a")
        lines = [await asyncio.wait_for(answer.content.readline(), 5) for answer in (one, two)]
    assert lines[0] == lines[1]
    assert len(server.state.table("configmaps").events[-1].frames) == 1


async def test_what_still_gathers_is_neither_missed_nor_doubled_by_a_watcher_that_joins(
    http: Any, server: ApiServer, monkeypatch: Any
) -> None:
    monkeypatch.setattr(state, "TELL_PAUSE", 1e9)
    monkeypatch.setattr(state, "LONGEST_TELL_PAUSE", 3600.0)
    headers = {"Authorization": f"Bearer {server.token}"}
    url = f"{server.url}{CONFIG_MAPS}?watch=true"
    async with http.session.get(url, headers=headers) as early:
        first, _ = await make(http, "told", "gathering")
        version = first["metadata"]["resourceVersion"]
        async with http.session.get(f"{url}&resourceVersion={version}", headers=headers) as late:
            await make(http, "after")
            server.state.table("configmaps").tell_now()
            assert [await _name(late) for _ in range(2)] == ["gathering", "after"]
        assert [await _name(early) for _ in range(3)] == ["told", "gathering", "after"]


async def test_a_bookmark_comes_after_all_that_it_covers(http: Any, server: ApiServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(state, "TELL_PAUSE", 1e9)
    monkeypatch.setattr(state, "LONGEST_TELL_PAUSE", 3600.0)
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.5)
    url = f"{server.url}{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true"
    async with http.session.get(url, headers={"Authorization": f"Bearer {server.token}"}) as answer:
        await make(http, "told", "gathering")
        seen = [await _event(answer) for _ in range(3)]
    assert [event["type"] for event in seen] == ["ADDED", "ADDED", "BOOKMARK"]


async def _event(answer: Any) -> Any:
    return json.loads(await asyncio.wait_for(answer.content.readline(), 5))


async def _name(answer: Any) -> str:
    return str((await _event(answer))["object"]["metadata"]["name"])
