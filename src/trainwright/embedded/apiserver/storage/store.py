"""What the state needs of a place to keep it: `SqliteStore` on disk, `MemoryStore` for as long as the process lives.

In: changes, each with the version it got. Out: a call back once they are kept, in the same order, or the reason why
not. Reads never come here after start: `load` fills the memory once.

    StoreError
    ├── StoreLocked      another process holds this directory
    ├── StoreCorrupt     the file is damaged
    ├── StoreTooNew      written by a newer version
    └── StoreOutdated    a change that was made upon one that could not be written
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol


class StoreError(Exception):
    """The store cannot be used; the text says what to do."""


class StoreLocked(StoreError):
    pass


class StoreCorrupt(StoreError):
    pass


class StoreFull(StoreError):
    """The disk has no room; what is stored is whole."""


class StoreTooNew(StoreError):
    pass


class StoreOutdated(StoreError):
    pass


class Key(NamedTuple):
    """Where an object lives: `Key("configmaps", "default", "c1")`; the resource carries its group after a dot."""

    resource: str
    namespace: str
    name: str


class Change(NamedTuple):
    """One change. `value` is None for a deletion."""

    version: int
    key: Key
    value: bytes | None


class Row(NamedTuple):
    key: Key
    version: int
    value: bytes


Committed = Callable[[list[Change], Exception | None], None]
"""Called with changes that are kept, in order, or with those that are not and why; from any thread."""


class Store(Protocol):
    """`open()`, `load()` once and the settings, then `start()` and `write()`; `close()` keeps what was written."""

    place: str  # for messages

    def open(self) -> None:
        """Raises a `StoreError` that says what to do."""

    def load(self) -> Iterator[Row]: ...

    def last_version(self) -> int: ...

    def setting(self, name: str) -> str | None: ...

    def set_setting(self, name: str, value: str) -> None:
        """Only before `start`."""

    def start(self, committed: Committed) -> None: ...

    def write(self, epoch: int, change: Change) -> None:
        """Keep a change; never waits. `epoch` counts the failed batches that its maker knew of."""

    def close(self) -> None: ...
