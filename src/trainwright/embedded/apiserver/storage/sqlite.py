"""The durable store: an SQLite file with one writer thread and group commit.

Invariant: an acknowledged write is on disk (WAL, synchronous FULL), its object row and its log row together or
neither; versions are the keys of the log and never repeat, not even after a crash. A full disk is no damage: writes
fail, and objects that exist can be changed and deleted from a reserve.
"""

from __future__ import annotations

import fcntl
import os
import queue
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from trainwright.embedded.apiserver.storage.reserve import Reserve
from trainwright.embedded.apiserver.storage.store import (
    Change,
    Committed,
    Key,
    Row,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreOutdated,
    StoreTooNew,
)

SCHEMA_VERSION = 1
NEEDED_BYTES = 256 * 1024
"""Free space with which SQLite can open a file, its log and its index."""


class Limits(msgspec.Struct, frozen=True):
    """How much goes into one commit, and how much of the log is kept."""

    batch: int = 512
    log_rows_kept: int = 1_000
    trim_log_every: int = 5_000


DEFAULT_LIMITS = Limits()


class SqliteStore:
    """One file. `write()` comes from the event loop; `close()` drains what was queued."""

    def __init__(self, directory: Path, limits: Limits = DEFAULT_LIMITS) -> None:
        self.directory = directory
        self.path = directory / "state.db"
        self.place = str(self.path)
        self._limits = limits
        self._queue: queue.SimpleQueue[tuple[int, Change] | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._lock_file: int | None = None
        self._since_trim = 0
        self._reserve = Reserve(directory / "reserve")

    def open(self) -> None:
        """Take the lock and check the file. Raises a `StoreError` that says what to do."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take_lock()
        try:
            self._connect()
            self._reserve.fill()
        except BaseException:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._release_lock()
            raise

    def _take_lock(self) -> None:
        path = self.directory / "lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write to {self.directory}: {error.strerror}; choose another --dir") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise StoreLocked(
                f"another process (pid {holder}) already serves {self.directory}: use it, end it with"
                " `trainwright down`, or choose another --dir"
            ) from None
        self._lock_file = handle
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass  # a full disk; the lock is held all the same

    def _release_lock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _connect(self) -> None:
        damaged = f"{self.path} is damaged; restore it from a copy, or remove {self.directory} to start empty"
        try:
            fresh = not self.path.exists()
            old_mask = os.umask(0o077)
            try:
                connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            finally:
                os.umask(old_mask)
            self._connection = connection
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise StoreTooNew(
                    f"{self.path} was written by a newer version of Trainwright (format {version}, this one knows"
                    f" {SCHEMA_VERSION}): upgrade Trainwright, or choose another --dir"
                )
            if not fresh and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise StoreCorrupt(damaged)
            if version == 0:
                self._create_tables(connection)
        except sqlite3.Error as error:
            if _is_damage(error):
                raise StoreCorrupt(f"{damaged} ({error})") from None
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error) -> StoreError:
        """The file could not be read or written, and nothing says that what it holds is not whole."""
        try:
            there = os.statvfs(self.directory)
            free = there.f_bavail * there.f_frsize
        except OSError:
            free = 0
        if _is_full(error) or free < NEEDED_BYTES:
            return StoreFull(
                f"there is no room for {self.path} ({free // 1024} KB free where it lies): make room on that disk and"
                " try again. What is stored is whole: do not delete it"
            )
        return StoreError(
            f"{self.path} cannot be used: {error}. Nothing says that it is damaged: do not delete it; look at"
            " permissions and at the disk, then try again"
        )

    @staticmethod
    def _create_tables(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "CREATE TABLE objects (resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
            " version INTEGER NOT NULL, checksum INTEGER NOT NULL, value BLOB NOT NULL,"
            " PRIMARY KEY (resource, namespace, name))"
        )
        connection.execute(
            "CREATE TABLE log (version INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,"
            " name TEXT NOT NULL, deleted INTEGER NOT NULL)"
        )
        connection.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute("COMMIT")

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._connection is not None, "the store is not open"
        return self._connection

    def load(self) -> Iterator[Row]:
        """Every object, checked against its checksum."""
        try:
            rows = self.connection.execute("SELECT resource, namespace, name, version, checksum, value FROM objects")
            for resource, namespace, name, version, checksum, value in rows:
                if not isinstance(value, bytes) or zlib.crc32(value) != checksum:
                    raise StoreCorrupt(
                        f"{self.path} is damaged: {resource} {namespace}/{name} differs from its checksum; restore it"
                        f" from a copy, or remove {self.directory} to start empty"
                    )
                yield Row(Key(resource, namespace, name), version, value)
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise self._unusable(error) from None
            raise StoreCorrupt(
                f"{self.path} is damaged ({error}); restore it from a copy, or remove {self.directory} to start empty"
            ) from None

    def last_version(self) -> int:
        found = self.connection.execute("SELECT max(version) FROM log").fetchone()[0]
        return int(found or 0)

    def setting(self, name: str) -> str | None:
        found = self.connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def set_setting(self, name: str, value: str) -> None:
        """Only before `start`: afterwards the connection belongs to the writer."""
        assert self._thread is None
        if self.setting(name) == value:
            return
        try:
            self.connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def start(self, committed: Committed) -> None:
        """From here on the connection belongs to the writer thread; `committed` is called on it."""
        self._thread = threading.Thread(target=self._write_loop, args=(committed,), name="store", daemon=True)
        self._thread.start()

    def write(self, epoch: int, change: Change) -> None:
        """Queue a change; `committed` hears of all changes in this order. The epoch counts the failed batches its maker
        knew of."""
        self._queue.put((epoch, change))

    def _write_loop(self, committed: Committed) -> None:
        epoch = 0
        while True:
            batch, outdated, last = self._next_batch(epoch)
            if outdated:
                committed(outdated, StoreOutdated("an earlier change could not be written"))
            if batch:
                try:
                    self._commit_within_reserve(batch)
                except (sqlite3.Error, StoreError) as error:
                    epoch += 1
                    committed(batch, error)
                else:
                    committed(batch, None)
            if last:
                return

    def _next_batch(self, epoch: int) -> tuple[list[Change], list[Change], bool]:
        """Waits for a change and takes what else is there: what can be committed, what cannot, whether it is the last.

        A change made before its maker heard of a failed batch may build on what was never stored.
        """
        batch: list[Change] = []
        outdated: list[Change] = []
        entry = self._queue.get()
        while entry is not None:
            (batch if entry[0] == epoch else outdated).append(entry[1])
            if len(batch) >= self._limits.batch:
                return batch, outdated, False
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                return batch, outdated, False
        return batch, outdated, True

    def _commit_within_reserve(self, batch: list[Change]) -> None:
        """On a full disk only what changes objects that are there is written, in the space kept back for it."""
        if self._reserve.is_spent and not self._reserve.fill() and self._creates(batch):
            raise StoreFull("the disk is full: objects can be changed and deleted, but not created")
        try:
            self._commit(batch)
        except sqlite3.Error as error:
            if not _is_full(error) or self._creates(batch) or not self._reserve.release():
                raise
            self._commit(batch)

    def _creates(self, batch: list[Change]) -> bool:
        known = "SELECT 1 FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
        return any(
            change.value is not None and self.connection.execute(known, change.key).fetchone() is None
            for change in batch
        )

    def _commit(self, batch: list[Change]) -> None:
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for version, key, value in batch:
                if value is None:
                    execute("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", key)
                else:
                    execute(
                        "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)",
                        (*key, version, zlib.crc32(value), value),
                    )
                execute("INSERT INTO log VALUES (?, ?, ?, ?, ?)", (version, *key, value is None))
            self._since_trim += len(batch)
            if self._since_trim >= self._limits.trim_log_every:
                self._since_trim = 0
                execute("DELETE FROM log WHERE version < ?", (batch[-1].version - self._limits.log_rows_kept,))
            execute("COMMIT")
        except sqlite3.Error:
            if self.connection.in_transaction:
                execute("ROLLBACK")
            raise

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._release_lock()


def _is_damage(error: sqlite3.Error) -> bool:
    """Only these two say that the file is not what was written."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _is_full(error: sqlite3.Error) -> bool:
    return _code(error) == sqlite3.SQLITE_FULL or getattr(error, "sqlite_errorcode", 0) in _FULL_IO


_FULL_IO = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP)


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 for an error that is not SQLite's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
