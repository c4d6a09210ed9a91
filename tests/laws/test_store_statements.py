"""Killed at any SQL statement, a write is there whole or not at all, and what was acknowledged before it stays (E2)."""

from __future__ import annotations

import os
import queue
import sqlite3
from pathlib import Path
from typing import Any, NoReturn

import pytest

from trainwright.embedded.apiserver.storage.sqlite import SqliteStore
from trainwright.embedded.apiserver.storage.store import Change, Key

BEFORE, CHANGED, GONE, NEW = (Key("configmaps", "default", name) for name in ("before", "changed", "gone", "new"))
BATCH = [Change(4, CHANGED, b"after"), Change(5, GONE, None), Change(6, NEW, b"new")]
STATEMENTS = 8  # BEGIN, two for each change, COMMIT


class Mortal:
    """A connection whose process ends at a statement; an odd number: before it, an even one: after it."""

    def __init__(self, inner: sqlite3.Connection, at: int) -> None:
        self._inner = inner
        self._left = at

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._left -= 1
        if self._left == 0:
            os._exit(9)
        cursor = self._inner.execute(*arguments)
        self._left -= 1
        if self._left == 0:
            os._exit(9)
        return cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def write_and_die(directory: Path, at: int) -> NoReturn:
    store = SqliteStore(directory)
    store.open()
    store._connection = Mortal(store.connection, at)  # type: ignore[assignment]
    store._commit(BATCH)
    os._exit(0)


def prepare(directory: Path) -> None:
    store = SqliteStore(directory)
    store.open()
    said: queue.Queue[Exception | None] = queue.Queue()
    store.start(lambda batch, error: said.put(error))
    for version, key in ((1, BEFORE), (2, CHANGED), (3, GONE)):
        store.write(0, Change(version, key, b"old"))
        assert said.get(timeout=20) is None
    store.close()


@pytest.mark.parametrize("at", range(1, 2 * STATEMENTS + 2))
def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path, at: int) -> None:
    prepare(tmp_path)
    child = os.fork()
    if child == 0:
        write_and_die(tmp_path, at)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == (9 if at <= 2 * STATEMENTS else 0)
    store = SqliteStore(tmp_path)
    store.open()
    try:
        rows = {row.key: (row.version, row.value) for row in store.load()}
        log = store.connection.execute("SELECT version FROM log ORDER BY version").fetchall()
        old = {BEFORE: (1, b"old"), CHANGED: (2, b"old"), GONE: (3, b"old")}
        new = {BEFORE: (1, b"old"), CHANGED: (4, b"after"), NEW: (6, b"new")}
        is_committed = at >= 2 * STATEMENTS
        assert rows == (new if is_committed else old)
        assert [row[0] for row in log] == list(range(1, 7 if is_committed else 4))
        assert store.last_version() == (6 if is_committed else 3)
    finally:
        store.close()
