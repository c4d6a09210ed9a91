"""The file: what was acknowledged is there after reopening, and what cannot be used is refused in a sentence."""

from __future__ import annotations

import os
import queue
import sqlite3
from pathlib import Path

import pytest

from trainwright.embedded.apiserver.storage.sqlite import Limits, SqliteStore
from trainwright.embedded.apiserver.storage.store import (
    Change,
    Key,
    Row,
    StoreCorrupt,
    StoreError,
    StoreLocked,
    StoreOutdated,
    StoreTooNew,
)

KEY = Key("configmaps", "default", "c")
WAIT = 10.0


class Running:
    """An open store, and what it says it committed."""

    def __init__(self, directory: Path, **limits: int) -> None:
        self.store = SqliteStore(directory, Limits(**limits))
        self.store.open()
        self.said: queue.Queue[tuple[list[Change], Exception | None]] = queue.Queue()

    def start(self) -> None:
        self.store.start(lambda batch, error: self.said.put((batch, error)))

    def write(self, version: int, value: bytes | None, key: Key = KEY, epoch: int = 0) -> None:
        self.store.write(epoch, Change(version, key, value))

    def answer(self) -> tuple[list[Change], Exception | None]:
        return self.said.get(timeout=WAIT)


def rows(directory: Path) -> list[Row]:
    again = SqliteStore(directory)
    again.open()
    try:
        return sorted(again.load())
    finally:
        again.close()


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.start()
    other = KEY._replace(name="gone")
    for version, key, value in ((1, KEY, b"one"), (2, other, b"two"), (3, KEY, b"three"), (4, other, None)):
        running.write(version, value, key)
    running.store.close()
    assert rows(tmp_path) == [Row(KEY, 3, b"three")]


def test_versions_go_on_after_a_deletion_was_the_last_change(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.start()
    running.write(7, b"x")
    running.write(8, None)
    running.store.close()
    again = SqliteStore(tmp_path)
    again.open()
    assert again.last_version() == 8
    again.close()


def test_changes_that_wait_share_one_commit(tmp_path: Path) -> None:
    running = Running(tmp_path)
    for version in range(1, 101):
        running.write(version, b"x", KEY._replace(name=str(version)))
    running.start()
    batch, error = running.answer()
    assert error is None
    assert [write.version for write in batch] == list(range(1, 101))
    running.store.close()


def test_a_commit_takes_no_more_than_its_limit(tmp_path: Path) -> None:
    running = Running(tmp_path, batch=10)
    for version in range(1, 26):
        running.write(version, b"x")
    running.start()
    assert [len(running.answer()[0]) for _ in range(3)] == [10, 10, 5]
    running.store.close()


def test_what_builds_on_a_failed_change_is_refused_until_its_maker_knows(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.store.connection.execute(
        "CREATE TRIGGER full BEFORE INSERT ON log WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    running.start()
    running.write(1, b"x", KEY._replace(name="bad"))
    _, failed = running.answer()
    running.write(2, b"x", epoch=0)
    _, outdated = running.answer()
    running.write(3, b"y", epoch=1)
    _, fine = running.answer()
    running.store.close()
    assert isinstance(failed, sqlite3.Error)
    assert isinstance(outdated, StoreOutdated)
    assert fine is None
    assert rows(tmp_path) == [Row(KEY, 3, b"y")]


def test_settings_last(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    assert store.setting("port") is None
    store.set_setting("port", "1")
    store.set_setting("port", "2")
    store.close()
    store.open()
    assert store.setting("port") == "2"
    store.close()


def test_a_directory_in_use_is_refused_with_its_holder(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path)
    first.open()
    with pytest.raises(StoreLocked) as found:
        SqliteStore(tmp_path).open()
    assert str(found.value) == (
        f"another process (pid {os.getpid()}) already serves {tmp_path}: use it, end it with `trainwright down`, or"
        " choose another --dir"
    )
    first.close()
    second = SqliteStore(tmp_path)
    second.open()
    second.close()


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    store.connection.execute("PRAGMA user_version=99")
    store.close()
    with pytest.raises(StoreTooNew, match=r"written by a newer version of Trainwright \(format 99, this one knows 1\)"):
        SqliteStore(tmp_path).open()
    with sqlite3.connect(tmp_path / "state.db") as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (99,)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"this is not a database, by any means" * 200)
    with pytest.raises(StoreCorrupt, match=r"is damaged; restore it from a copy, or remove .* to start empty"):
        SqliteStore(tmp_path).open()


def test_an_object_that_differs_from_its_checksum_is_named(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.start()
    running.write(1, b"one")
    running.store.close()
    with sqlite3.connect(tmp_path / "state.db") as raw:
        raw.execute("UPDATE objects SET value = x'00'")
    with pytest.raises(StoreCorrupt, match="configmaps default/c differs from its checksum"):
        rows(tmp_path)


def test_a_refused_file_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(StoreCorrupt):
        SqliteStore(tmp_path).open()
    (tmp_path / "state.db").unlink()
    store = SqliteStore(tmp_path)
    store.open()
    store.close()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StoreError, match=r"cannot write to .*: Is a directory; choose another --dir"):
        SqliteStore(tmp_path).open()


def test_others_cannot_read_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state")
    store.open()
    store.close()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / "state.db").stat().st_mode & 0o077 == 0


def test_the_log_is_trimmed_and_keeps_its_last_version(tmp_path: Path) -> None:
    running = Running(tmp_path, trim_log_every=20, log_rows_kept=5)
    for version in range(1, 31):
        running.write(version, b"x")
    running.start()
    running.store.close()
    again = SqliteStore(tmp_path)
    again.open()
    assert again.last_version() == 30
    assert again.connection.execute("SELECT min(version) FROM log").fetchone()[0] >= 25
    again.close()
