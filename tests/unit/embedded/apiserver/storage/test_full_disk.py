"""A full disk is no damage: nothing is lost, nobody is told to delete anything, and deletes make room."""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwright.api.resources import CONFIG_MAPS
from trainwright.client import ApiError, Client
from trainwright.embedded.apiserver.inprocess import InProcessTransport
from trainwright.embedded.apiserver.server import Server
from trainwright.embedded.apiserver.storage import reserve
from trainwright.embedded.apiserver.storage.sqlite import SqliteStore
from trainwright.embedded.apiserver.storage.store import Change, Key, StoreCorrupt, StoreError, StoreFull

WAIT = 20.0
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MiB."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(mounted)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Leaves so many bytes free."""
    filler = disk / "filler"
    free = os.statvfs(disk)
    with filler.open("ab") as file:
        with contextlib.suppress(OSError):  # a full disk is what is wanted
            file.write(b"x" * max(0, free.f_bavail * free.f_frsize - leave))
    return filler


class Open:
    """A store that runs. `write` says whether the change is kept, and raises what the store said if not."""

    def __init__(self, directory: Path) -> None:
        self.store = SqliteStore(directory)
        self.store.open()
        self.version = self.store.last_version()
        self.epoch = 0
        self.said: queue.Queue[tuple[list[Change], Exception | None]] = queue.Queue()
        self.store.start(lambda batch, error: self.said.put((batch, error)))

    def write(self, name: str, value: bytes | None) -> None:
        self.version += 1
        self.store.write(self.epoch, Change(self.version, Key("configmaps", "default", name), value))
        _, error = self.said.get(timeout=WAIT)
        if error is not None:
            self.epoch += 1
            raise error


def refusal(directory: Path) -> StoreError | None:
    """What a store on this directory says that it cannot be opened."""
    store = SqliteStore(directory)
    try:
        store.open()
    except StoreError as error:
        return error
    finally:
        store.close()
    return None


def names(directory: Path) -> list[str]:
    store = SqliteStore(directory)
    store.open()
    try:
        return sorted(row.key.name for row in store.load())
    finally:
        store.close()


@pytest.mark.parametrize("free", [0, 4096, 8192, 16384, 65536])
def test_a_nearly_full_disk_is_named_and_nobody_is_told_to_remove_the_state(disk: Path, free: int) -> None:
    directory = disk / "cluster"
    opened = Open(directory)
    for number in range(20):
        opened.write(f"object-{number}", b"x" * 500)
    opened.store.close()
    (directory / "reserve").unlink()
    filler = fill(disk, free)
    said = refusal(directory)
    assert said is None or (isinstance(said, StoreFull) and "do not delete it" in str(said)), said
    filler.unlink()
    assert len(names(directory)) == 20


def test_on_a_full_disk_creates_fail_deletes_work_and_what_was_acknowledged_is_kept(disk: Path) -> None:
    directory = disk / "cluster"
    opened = Open(directory)
    for number in range(200):
        opened.write(f"object-{number:03}", b"x" * 2000)
    filler = fill(disk, 0)
    kept = []
    with pytest.raises((sqlite3.Error, StoreFull)):  # noqa: PT012 - the log has some room left
        for number in range(10_000):
            opened.write(f"more-{number:05}", b"x" * 2000)
            kept.append(f"more-{number:05}")
    for number in range(100):
        opened.write(f"object-{number:03}", None)
    opened.write("object-150", b"changed")
    with pytest.raises(StoreFull, match="the disk is full"):
        opened.write("another", b"x")
    filler.unlink()
    opened.write("another", b"x")
    opened.store.close()
    assert names(directory) == sorted([*kept, *(f"object-{n:03}" for n in range(100, 200)), "another"])
    assert (directory / "reserve").stat().st_blocks * 512 >= reserve.RESERVED_BYTES


@pytest.mark.parametrize("damage", [b"not a database at all" * 300, b"\0" * 100])
def test_damage_is_still_damage(tmp_path: Path, damage: bytes) -> None:
    opened = Open(tmp_path)
    opened.write("a", b"x")
    opened.store.close()
    with (tmp_path / "state.db").open("r+b") as file:
        file.write(damage)
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        store.open()


async def test_a_server_that_cannot_write_says_so_when_asked_whether_it_is_ready(disk: Path) -> None:
    store = SqliteStore(disk)
    store.open()
    with contextlib.closing(store):
        await look_at_readiness(store, disk)


async def look_at_readiness(store: SqliteStore, disk: Path) -> None:
    async with Server(store) as server:
        client = Client(InProcessTransport(server))
        assert await client.raw("/readyz", decode=bytes) == b"ok"
        filler = fill(disk, 0)
        for number in range(500):  # what is reserved for deletes is not for creates
            try:
                body = {"metadata": {"name": f"c{number}"}, "data": {"x": "y" * 4096}}
                await client.create(CONFIG_MAPS, {**CONFIG_MAP, **body}, "default")
            except ApiError:
                break
        with pytest.raises(ApiError, match="readyz check failed"):
            await client.raw("/readyz", decode=bytes)
        filler.unlink()
        await client.create(CONFIG_MAPS, {**CONFIG_MAP, "metadata": {"name": "again"}}, "default")
        assert await client.raw("/readyz", decode=bytes) == b"ok"
