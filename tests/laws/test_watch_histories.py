"""What our API server's watches tell of a random history, by the nine properties of etcd's robustness tests (V10).

A history is some writes to ConfigMaps of two namespaces, with watches that begin anywhere in it: from the present, from
an old version, with the initial state first, of one namespace, of a label, read at once or late. Some minutes may pass,
so that old versions are forgotten. What really happened is known from the answers to the writes.

    ordered        versions of a watch only grow
    unique         no change is told twice
    atomic         a version is one change: all watches tell the same of it
    reliable       no change between the first and the last that was told is missing
    resumable      a watch from a version tells what came after it, or that it is too old
    bookmarkable   after a bookmark come only later changes, before it all earlier ones
    prev value     what is deleted, or no longer matches, is told as it last was
    is create      an object is ADDED if, and only if, the watch did not have it
    filter         nothing else is told than what was asked for

100 histories by default, `TRAINWRIGHT_WATCH_HISTORIES` says how many; `make test-long` runs 10,000.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from selfcheck.leftovers import Tasks
from trainwright.api.resources import CONFIG_MAPS, NAMESPACES
from trainwright.client.requests import Query, Request, path_of
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer

COUNT = int(os.environ.get("TRAINWRIGHT_WATCH_HISTORIES", "100"))
SEED = int(os.environ.get("TRAINWRIGHT_WATCH_SEED", "1"))
SPACES = ("left", "right")
NAMES = ("a", "b", "c")
VALUES = ("1", "2")
OPERATIONS, WATCHES = 14, 4


@dataclass(frozen=True)
class Change:
    version: int
    space: str
    name: str
    label: str | None
    value: str | None
    """None: it was deleted."""


@dataclass
class Model:
    """What happened, as the answers to writes say."""

    changes: list[Change] = field(default_factory=list)
    present: dict[tuple[str, str], Change] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        self.changes.append(change)
        if change.value is None:
            del self.present[change.space, change.name]
        else:
            self.present[change.space, change.name] = change


@dataclass
class Watch:
    """What was asked for, and what was told."""

    space: str | None
    label: str | None
    since: int | None
    """The version that it began after; None: the initial state came first."""
    begun: int
    """The server's version when it began."""
    before: dict[tuple[str, str], Change]
    """What was there at `since`, or when it began."""
    reads: asyncio.Event
    lines: list[Json] = field(default_factory=list)

    def wants(self, change: Change | None) -> bool:
        if change is None or change.value is None or (self.space is not None and change.space != self.space):
            return False
        return self.label is None or change.label == self.label


class History:
    def __init__(self, server: VirtualServer, tasks: Tasks, chance: random.Random) -> None:
        self._server = server
        self._tasks = tasks
        self._chance = chance
        self._running: list[asyncio.Task[None]] = []
        self.model = Model()
        self.watches: list[Watch] = []

    async def play(self) -> None:
        begin = sorted(self._chance.sample(range(OPERATIONS), WATCHES))
        for number in range(OPERATIONS):
            if number in begin:
                await self._begin_watch()
            await self._operate()
            if self._chance.random() < 0.05:
                await self._server.clock.advance(self._chance.choice((1.0, 70.0, 330.0)))
        for watch in self.watches:
            watch.reads.set()
        await self._server.clock.advance(61)  # a bookmark at the end
        await self._end()

    async def _operate(self) -> None:
        space, name = self._chance.choice(SPACES), self._chance.choice(NAMES)
        there = self.model.present.get((space, name))
        label, value = self._chance.choice((*VALUES, None)), self._chance.choice(VALUES)
        admin = self._server.admin
        if there is None:
            body: Json = {"metadata": {"name": name, "labels": {"x": label} if label else {}}, "data": {"v": value}}
            made = await admin.create(CONFIG_MAPS, body, space)
        elif self._chance.random() < 0.3:
            await admin.delete(CONFIG_MAPS, name, space)
            self.model.add(Change(await self._version(), space, name, there.label, None))
            return
        else:
            patch = {"metadata": {"labels": {"x": label}}, "data": {"v": value}}
            made = await admin.patch(CONFIG_MAPS, patch, name=name, namespace=space)
        change = Change(int(made["metadata"]["resourceVersion"]), space, name, label, value)
        if there is not None and (there.label, there.value) == (label, value):
            assert change.version == there.version, "a change of nothing has made a version"
            return
        self.model.add(change)

    async def _version(self) -> int:
        return int((await self._server.admin.list(CONFIG_MAPS, "left")).resource_version)

    async def _begin_watch(self) -> None:
        space = self._chance.choice((*SPACES, None))
        label = self._chance.choice((*VALUES, None, None))
        query: list[tuple[str, str]] = [("watch", "1"), ("allowWatchBookmarks", "1")]
        if label is not None:
            query.append(("labelSelector", f"x={label}"))
        since, before = None, dict(self.model.present)
        if self.model.changes and self._chance.random() < 0.6:
            position = self._chance.randrange(len(self.model.changes))
            since = self.model.changes[position].version
            query.append(("resourceVersion", str(since)))
            past = Model()
            for change in self.model.changes[: position + 1]:
                past.add(change)
            before = past.present
        elif self._chance.random() < 0.5:
            query += [("sendInitialEvents", "1"), ("resourceVersionMatch", "NotOlderThan")]
        watch = Watch(space, label, since, await self._version(), before, asyncio.Event())
        if self._chance.random() < 0.7:
            watch.reads.set()
        self.watches.append(watch)
        self._running.append(self._tasks.start(self._read(watch, tuple(query))))
        await self._server.clock.settle()

    async def _read(self, watch: Watch, query: Query) -> None:
        request = Request("GET", path_of(CONFIG_MAPS, watch.space), query)
        async with self._server.admin.transport.stream(request, deadline=5.0, idle=4000.0) as stream:
            await watch.reads.wait()
            async for line in stream.lines():
                watch.lines.append(msgspec.json.decode(line))

    async def _end(self) -> None:
        for task in self._running:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for space, name in list(self.model.present):
            await self._server.admin.delete(CONFIG_MAPS, name, space)


def violations(watch: Watch, changes: list[Change]) -> list[str]:
    if watch.lines and watch.lines[0]["type"] == "ERROR":
        error = watch.lines[0]["object"]
        fine = error["code"] == 410 and len(watch.lines) == 1 and watch.since is not None
        return [] if fine else [f"resumable: {watch.lines}"]
    told: list[Json] = list(watch.lines)
    wrong: list[str] = []
    had = {key for key, change in watch.before.items() if watch.wants(change)} if watch.since is not None else set()
    last = watch.since if watch.since is not None else watch.begun
    if watch.since is None:
        expected = sorted((c.space, c.name, c.version) for c in watch.before.values() if watch.wants(c))
        initial, told = told[: len(expected)], told[len(expected) :]
        if sorted(_key(line) for line in initial) != expected or any(line["type"] != "ADDED" for line in initial):
            wrong.append(f"reliable: the initial state is {initial}, not {expected}")
        had = {(space, name) for space, name, _ in expected}
    later = {change.version: change for change in changes if change.version > last}
    known = dict(watch.before)
    due = []  # what has to be told: version, type, label and value
    for version in sorted(later):
        change = later[version]
        previous = known.get((change.space, change.name))
        now, before = watch.wants(change), watch.wants(previous)
        if now or before:
            kind = ("MODIFIED" if before else "ADDED") if now else "DELETED"
            shown = change if now else previous
            assert shown is not None
            due.append((version, kind, change.space, change.name, shown.label, shown.value))
        known[change.space, change.name] = change
    seen = []
    for line in told:
        version = int(line["object"]["metadata"]["resourceVersion"])
        if line["type"] == "BOOKMARK":
            missing = [entry for entry in due if last < entry[0] <= version and entry not in seen]
            if missing:
                wrong.append(f"bookmarkable: {version} came before {missing}")
        elif version <= last:
            wrong.append(f"ordered, unique: {version} came after {last}")
        else:
            seen.append(_entry(line))
        last = max(last, version)
        key = (line["object"]["metadata"].get("namespace", ""), line["object"]["metadata"].get("name", ""))
        if line["type"] == "ADDED" and key in had:
            wrong.append(f"is create: {key} is told as ADDED, and was there")
        if line["type"] in ("MODIFIED", "DELETED") and key not in had:
            wrong.append(f"is create: {key} is told as {line['type']}, and was not there")
        had = had - {key} if line["type"] == "DELETED" else had | {key}
    if seen != due:
        wrong.append(f"reliable, atomic, prev value, filter: told\n    {seen}\n  instead of\n    {due}")
    if not any(line["type"] == "BOOKMARK" for line in told):
        wrong.append("bookmarkable: none came in a minute")
    return wrong


def _key(line: Json) -> tuple[str, str, int]:
    metadata = line["object"]["metadata"]
    return metadata["namespace"], metadata["name"], int(metadata["resourceVersion"])


def _entry(line: Json) -> tuple[int, str, str, str, str | None, Any]:
    space, name, version = _key(line)
    item = line["object"]
    return version, line["type"], space, name, (item["metadata"].get("labels") or {}).get("x"), item["data"]["v"]


@pytest.mark.timeout(3600)
async def test_every_watch_of_a_random_history_tells_it_as_it_was(tasks: Tasks) -> None:
    kinds: dict[str, int] = {}
    async with VirtualServer() as server:
        for space in SPACES:
            await server.admin.create(NAMESPACES, {"metadata": {"name": space}})
        for number in range(COUNT):
            history = History(server, tasks, random.Random(SEED * 1_000_003 + number))
            await history.play()
            for watch in history.watches:
                wrong = violations(watch, history.model.changes)
                asked = (watch.space, watch.label, watch.since, watch.begun)
                assert not wrong, f"history {number}, watch {asked}:\n  " + "\n  ".join(wrong)
                for line in watch.lines:
                    kinds[line["type"]] = kinds.get(line["type"], 0) + 1
    print(f"{COUNT} histories, seed {SEED}: {json.dumps(kinds, sort_keys=True)}, 0 violations")
    assert min(kinds.get(kind, 0) for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")) > 0
