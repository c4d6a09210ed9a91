"""Stores and locks: one fetch for many, and nothing that a crash leaves locked."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwright.clock import SystemClock
from trainwright.initializers.folder import Folder
from trainwright.initializers.locks import locked, locked_if_free
from trainwright.initializers.partial import Partial
from trainwright.initializers.source import Item
from trainwright.initializers.store import Store

ITEM = Item("file", 7, "identity", "")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.at(tmp_path) as opened:
        yield opened


def nobody_waits() -> None:
    raise AssertionError("somebody else has the lock")


class Fetch:
    """Writes the file, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, partial: Partial) -> None:
        self.count += 1
        await partial.write(0, [b"content"])
        await partial.keep(0, 7)


async def test_many_at_once_fetch_once_and_read_together(folder: Folder, tmp_path: Path) -> None:
    fetch, reading, everybody = Fetch(), 0, asyncio.Event()
    stores = [Store(folder, SystemClock()) for _ in range(5)]

    async def read(store: Store) -> bytes:
        nonlocal reading
        async with store.holding(ITEM, fetch, lambda: None):
            reading += 1
            if reading == len(stores):
                everybody.set()
            await everybody.wait()  # all five hold it at the same time
            return (tmp_path / ITEM.key).read_bytes()

    assert await asyncio.gather(*map(read, stores)) == [b"content"] * 5
    assert fetch.count == 1


async def test_a_fetch_that_fails_leaves_nothing_whole_and_nothing_locked(folder: Folder) -> None:
    store = Store(folder, SystemClock())

    async def fail(partial: Partial) -> None:
        await partial.write(0, [b"con"])
        raise ConnectionError

    with pytest.raises(ConnectionError):
        async with store.holding(ITEM, fail, nobody_waits):
            pass
    assert not store.has(ITEM)
    async with store.holding(ITEM, Fetch(), nobody_waits):
        assert store.has(ITEM)


async def test_a_lock_of_a_killed_process_is_free(folder: Folder, tmp_path: Path) -> None:
    script = (
        "import fcntl, os, sys, time\n"
        f"fd = os.open({str(tmp_path / 'lock')!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        waited = asyncio.Event()

        async def wait() -> None:
            async with locked(folder, "lock", SystemClock(), waited.set, alone=True):
                pass

        waiting = asyncio.ensure_future(wait())
        await waited.wait()
        holder.kill()
        await asyncio.wait_for(waiting, 20)


async def test_who_waits_for_a_lock_that_is_removed_takes_the_new_one(folder: Folder) -> None:
    """The holder clears the key away, lock file and all; the waiting one must not hold a lock that nobody else sees."""
    waited = asyncio.Event()
    entered = asyncio.Event()

    async def wait() -> None:
        async with locked(folder, "lock", SystemClock(), waited.set, alone=True):
            entered.set()
            with locked_if_free(folder, "lock") as free:
                assert not free

    async with locked(folder, "lock", SystemClock(), nobody_waits, alone=True):
        waiting = asyncio.ensure_future(wait())
        await waited.wait()
        assert not entered.is_set()
        folder.remove("lock")
    await asyncio.wait_for(waiting, 20)
    assert entered.is_set()


async def test_room_is_made_by_what_was_used_longest_ago(folder: Folder, tmp_path: Path) -> None:
    """What somebody reads stays, what is asked for stays, and if it would not be enough nothing goes."""
    store = Store(folder, SystemClock())
    for age, key in enumerate(("oldest", "read", "wanted", "newest")):
        (tmp_path / key).write_bytes(bytes(100_000))
        os.utime(tmp_path / key, (1_000_000 + age, 1_000_000 + age))
    reader = os.open(tmp_path / "read.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(reader, fcntl.LOCK_SH)
    assert not store.make_room(10**18, {"wanted"})
    assert {"oldest", "read", "wanted", "newest"} <= set(folder.names())
    assert store.make_room(folder.free() + 50_000, {"wanted"})
    left = {name for name in folder.names() if "." not in name}
    assert left == {"read", "wanted", "newest"}
    os.close(reader)
