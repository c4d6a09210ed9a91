"""A store without a disk: it keeps what is written as long as it lives, and keeps it at once.

For servers in virtual time: a write is committed without waiting for a thread. A second server that is started on the
same store, after the first has ended, finds everything there, as after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.embedded.apiserver.storage.store import Change, Committed, Key, Row


class MemoryStore:
    def __init__(self) -> None:
        self.place = "memory"
        self._rows: dict[Key, Row] = {}
        self._settings: dict[str, str] = {}
        self._version = 0
        self._committed: Committed | None = None

    def copy(self) -> MemoryStore:
        """A store of its own with the same contents: the way to many servers that start from the same objects."""
        other = MemoryStore()
        other._rows, other._settings, other._version = dict(self._rows), dict(self._settings), self._version
        return other

    def open(self) -> None: ...

    def load(self) -> Iterator[Row]:
        return iter(tuple(self._rows.values()))

    def last_version(self) -> int:
        return self._version

    def setting(self, name: str) -> str | None:
        return self._settings.get(name)

    def set_setting(self, name: str, value: str) -> None:
        self._settings[name] = value

    def start(self, committed: Committed) -> None:
        self._committed = committed

    def write(self, epoch: int, change: Change) -> None:
        assert self._committed is not None, "the store is not started"
        if change.value is None:
            self._rows.pop(change.key, None)
        else:
            self._rows[change.key] = Row(change.key, change.version, change.value)
        self._version = change.version
        self._committed([change], None)

    def close(self) -> None:
        self._committed = None
