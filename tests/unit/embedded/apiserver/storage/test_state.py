"""Objects in memory: order, history, indexes, and what happens when the disk refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from selfcheck.leftovers import Tasks
from trainwright.clock import VirtualClock
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.storage.history import WINDOW, Window
from trainwright.embedded.apiserver.storage.memory import MemoryStore
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.sqlite import SqliteStore
from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key, Store
from trainwright.embedded.apiserver.storage.table import Event


def key(name: str, namespace: str = "default") -> Key:
    return Key("configmaps", namespace, name)


def obj(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": f"uid-{name}", **metadata}}


class Watcher:
    """Remembers what it is told; telling it takes `seconds`."""

    def __init__(self, clock: VirtualClock, seconds: float = 0.0) -> None:
        self.clock = clock
        self.seconds = seconds
        self.events: list[tuple[str, str, int]] = []
        self.deliveries = 0
        self.closed = False

    def deliver(self, events: list[Event]) -> None:
        self.clock.spend(self.seconds)
        self.deliveries += 1
        self.events += [(event.type, event.current.key.name, event.version) for event in events]

    def close(self) -> None:
        self.closed = True


def started(store: Store, clock: VirtualClock, window: Window = WINDOW) -> State:
    state = State(store, clock, window)
    state.load(store.load())
    state.start()
    return state


@pytest.fixture
async def state(clock: VirtualClock) -> State:
    return started(MemoryStore(), clock)


async def put(state: State, name: str, namespace: str = "default", **metadata: Any) -> Stored:
    stored, future = state.put(key(name, namespace), obj(name, **metadata))
    await future
    return stored


async def delete(state: State, name: str) -> None:
    _, future = state.delete(key(name), obj(name))
    await future


def names(found: Any) -> list[str]:
    return [stored.key.name for stored in found]


async def test_readers_see_only_what_is_on_disk_and_writers_build_on_what_is_on_its_way(state: State) -> None:
    stored, future = state.put(key("a"), obj("a"))
    assert state.get(key("a")) is None
    assert state.head(key("a")) is stored
    await future
    assert state.get(key("a")) is stored
    assert state.version == stored.version


async def test_watchers_hear_of_changes_in_their_order(state: State, clock: VirtualClock) -> None:
    watcher = Watcher(clock)
    state.table("configmaps").watchers[watcher] = None
    await put(state, "a")
    await put(state, "a")
    await delete(state, "a")
    assert watcher.events == [("ADDED", "a", 1), ("MODIFIED", "a", 2), ("DELETED", "a", 3)]


async def test_what_is_committed_together_is_told_together(tmp_path: Path, clock: VirtualClock) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    try:
        state = started(store, clock)
        watcher = Watcher(clock)
        state.table("configmaps").watchers[watcher] = None
        await asyncio.gather(*(state.put(key(f"n{number}"), obj(f"n{number}"))[1] for number in range(200)))
    finally:
        store.close()
    assert [version for _, _, version in watcher.events] == list(range(1, 201))
    assert watcher.deliveries < 20  # group commit: the first write alone, the rest in a few batches


async def test_after_a_slow_telling_events_gather_and_come_once_and_in_order(state: State, clock: VirtualClock) -> None:
    watcher = Watcher(clock, seconds=1.0)
    table = state.table("configmaps")
    table.watchers[watcher] = None
    await put(state, "a")
    await put(state, "b")
    await put(state, "c")
    assert watcher.events == [("ADDED", "a", 1)]
    table.tell_now()
    assert watcher.events == [("ADDED", "a", 1), ("ADDED", "b", 2), ("ADDED", "c", 3)]
    assert watcher.deliveries == 2


async def test_what_gathers_is_told_when_the_pause_is_over(state: State, clock: VirtualClock) -> None:
    watcher = Watcher(clock, seconds=0.01)
    state.table("configmaps").watchers[watcher] = None
    for name in ("a", "b", "c"):
        await put(state, name)
    await clock.advance(0.029)
    assert watcher.deliveries == 1
    await clock.advance(0.001)  # three times as long as the telling took
    assert [name for _, name, _ in watcher.events] == ["a", "b", "c"]
    assert watcher.deliveries == 2


async def test_a_namespace_is_read_in_the_order_of_names(state: State) -> None:
    for name in ("b", "c", "a"):
        await put(state, name)
    await put(state, "x", "default-2")
    table = state.table("configmaps")
    assert names(table.select("default")) == ["a", "b", "c"]
    assert names(table.select("default", "default/a")) == ["b", "c"]
    # "-" sorts before "/": storage order of keys, as etcd has it.
    assert names(table.select("")) == ["x", "a", "b", "c"]


async def test_the_past_is_the_present_with_later_changes_undone(state: State) -> None:
    first = await put(state, "a")
    second = await put(state, "b")
    await delete(state, "a")
    third = await put(state, "b", labels={"x": "y"})
    await put(state, "c")
    table = state.table("configmaps")
    assert names(table.at(first.version, "default")) == ["a"]
    assert names(table.at(second.version, "default")) == ["a", "b"]
    assert [(s.key.name, s.version) for s in table.at(third.version, "")] == [("b", third.version)]
    assert names(table.at(second.version, "default", "default/a")) == ["b"]


async def test_history_is_kept_for_a_while_and_then_forgotten(state: State, clock: VirtualClock) -> None:
    await put(state, "a")
    await clock.advance(299)
    last = await put(state, "b")
    state.compact()
    assert [event.version for event in state.table("configmaps").events] == [1, 2]
    await clock.advance(2)
    state.compact()
    assert [event.version for event in state.table("configmaps").events] == [2]
    assert state.table("configmaps").floor == 1
    await clock.advance(300)
    state.compact()
    assert not state.table("configmaps").events
    assert state.table("configmaps").floor == last.version


async def test_history_has_a_limit_of_events(clock: VirtualClock) -> None:
    state = started(MemoryStore(), clock, Window(events=3))
    for _ in range(5):
        await put(state, "a")
    table = state.table("configmaps")
    assert [event.version for event in table.events] == [3, 4, 5]
    assert table.floor == 2


async def test_history_has_a_limit_of_bytes(clock: VirtualClock) -> None:
    state = started(MemoryStore(), clock, Window(bytes=3000))
    for _ in range(4):
        await put(state, "a", annotations={"text": "x" * 1000})
    assert [event.version for event in state.table("configmaps").events] == [3, 4]


async def test_owners_and_uids_are_indexed(state: State) -> None:
    await put(state, "owner")
    await put(state, "a", ownerReferences=[{"uid": "uid-owner"}])
    assert state.dependents == {"uid-owner": {key("a")}}
    assert state.uids["uid-a"] == key("a")
    await put(state, "a")
    assert state.dependents == {}
    await delete(state, "a")
    assert "uid-a" not in state.uids


@pytest.mark.parametrize("kind", ["memory", "disk"])
async def test_all_is_there_again_after_a_restart(tmp_path: Path, clock: VirtualClock, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path)
    store.open()
    state = started(store, clock)
    await put(state, "a", ownerReferences=[{"uid": "u"}], labels={"l": "v"})
    await delete(state, (await put(state, "b")).key.name)
    store.close()
    store.open()
    again = State(store, clock)
    again.load(store.load())
    found = again.get(key("a"))
    store.close()
    assert found is not None
    assert (found.version, found.uid, found.labels, found.owners) == (1, "uid-a", {"l": "v"}, ("u",))
    assert again.version == 3
    assert again.table("configmaps").floor == 3
    assert again.dependents == {"u": {key("a")}}


async def test_a_copied_store_has_a_life_of_its_own(clock: VirtualClock) -> None:
    first = MemoryStore()
    await put(started(first, clock), "a")
    second = first.copy()
    await put(started(second, clock), "b")
    assert [row.key.name for row in first.load()] == ["a"]
    assert [row.key.name for row in second.load()] == ["a", "b"]
    assert (first.last_version(), second.last_version()) == (1, 2)


async def test_a_disk_that_refuses_fails_the_write_and_the_head_falls_back(tmp_path: Path, clock: VirtualClock) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    try:
        state = started(store, clock)
        kept = await put(state, "a")
        store.connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON log WHEN NEW.name = 'a' BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
        _, future = state.put(key("a"), obj("a"))
        with pytest.raises(StatusError, match=r"could not be written to .*: no room"):
            await future
        assert state.head(key("a")) is kept
        assert (await put(state, "b")).version > kept.version
    finally:
        store.close()


async def test_waiting_for_a_version_ends_when_it_comes_or_time_is_up(
    state: State, clock: VirtualClock, tasks: Tasks
) -> None:
    in_vain = tasks.start(state.wait_for(1, 3.0))
    await clock.advance(2.9)
    assert not in_vain.done()
    await clock.advance(0.2)
    assert in_vain.result() is False
    waiting = tasks.start(state.wait_for(1, 3.0))
    await clock.settle()
    await put(state, "a")
    await clock.settle()
    assert waiting.result() is True


async def test_a_type_that_goes_ends_its_watches(state: State, clock: VirtualClock) -> None:
    watcher = Watcher(clock)
    state.table("configmaps").watchers[watcher] = None
    state.drop_table("configmaps")
    assert watcher.closed
