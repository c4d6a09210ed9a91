"""All objects in memory, with a window of history: what every read and watch is answered from.

In: writes made by handlers on the event loop. Out: committed objects, events in version order, and indexes by owner
and UID.

A write is computed against the *head* (committed state plus what is on its way to disk), so that writers follow one
another without waiting; reads and watches see *committed* state only. If the disk refuses a batch, the head falls back
to what is committed and every write that was queued behind it fails with it.

Invariants: version order = commit order = event order; an object's bytes never change once stored.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Iterable
from typing import NamedTuple

from trainwright.clock import Clock, happens_within
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.storage.history import WINDOW, History, Window
from trainwright.embedded.apiserver.storage.objects import Stored, stored_as, stored_from
from trainwright.embedded.apiserver.storage.store import Change, Key, Row, Store, StoreOutdated
from trainwright.embedded.apiserver.storage.table import ADDED, DELETED, MODIFIED, Event, Table, path_of
from trainwright.schema.jsonobject import Json


class _Pending(NamedTuple):
    """A change on its way to the store."""

    change: Change
    shown: Stored  # what watchers will see: of a deletion, the object's last state
    future: asyncio.Future[None]

    @property
    def head(self) -> Stored | None:
        return None if self.change.value is None else self.shown


class State:
    """Tables by resource, and the one way to change them."""

    def __init__(self, store: Store, clock: Clock, window: Window = WINDOW) -> None:
        self.store = store
        self.clock = clock
        self.tables: dict[str, Table] = {}
        self.version = 0  # of the last committed write
        self.failing = ""  # why the last write could not be kept
        self.dependents: dict[str, set[Key]] = {}  # owner UID → keys that name it
        self.uids: dict[str, Key] = {}
        self.listeners: list[Callable[[Event], None]] = []
        self._assigned = 0  # of the last write made, committed or not
        self._epoch = 0  # failed batches heard of
        self._head: dict[Key, Stored | None] = {}  # writes on their way to disk
        self._pending: collections.deque[_Pending] = collections.deque()  # in the order of their versions
        self._history = History(window)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._progress: asyncio.Future[None] | None = None  # done at the next commit, if anybody waits for it

    def load(self, rows: Iterable[Row]) -> None:
        """Take over what the store kept."""
        for row in rows:
            stored = stored_from(row.key, row.version, row.value)
            self.table(row.key.resource).put(path_of(row.key), stored)
            self._index(None, stored)
        # A version that never reached the disk was never acknowledged, nor seen by a watcher: only committed events
        # are sent. So the log's last key is where to go on.
        self.version = self._assigned = self.store.last_version()
        for table in self.tables.values():
            table.floor = self.version

    def start(self) -> None:
        loop = self._loop = asyncio.get_running_loop()

        def committed(batch: list[Change], error: Exception | None) -> None:
            loop.call_soon_threadsafe(self._committed, batch, error)

        self.store.start(committed)

    # Reading

    def table(self, resource: str) -> Table:
        table = self.tables.get(resource)
        if table is None:
            table = self.tables[resource] = Table(resource, self.version, self.clock)
        return table

    def get(self, key: Key) -> Stored | None:
        table = self.tables.get(key.resource)
        return None if table is None else table.objects.get(path_of(key))

    def head(self, key: Key) -> Stored | None:
        """What a writer must build upon."""
        if key in self._head:
            return self._head[key]
        return self.get(key)

    async def wait_for(self, version: int, seconds: float) -> bool:
        """Whether the committed state reaches `version` in time."""
        deadline = self.clock.now() + seconds
        while self.version < version:
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            if not await happens_within(self.clock, deadline - self.clock.now(), self._progress):
                return False
        return True

    # Writing

    def put(self, key: Key, obj: Json) -> tuple[Stored, asyncio.Future[None]]:
        """Give the object the next version and send it to disk; the future is done when it is there."""
        stored = stored_as(key, self._next(), obj)
        return stored, self._enqueue(Change(stored.version, key, stored.data), stored)

    def delete(self, key: Key, obj: Json) -> tuple[Stored, asyncio.Future[None]]:
        """Remove the object; `obj` is its last state, which the watchers see with the deletion's version."""
        stored = stored_as(key, self._next(), obj)
        return stored, self._enqueue(Change(stored.version, key, None), stored)

    def _next(self) -> int:
        self._assigned += 1
        return self._assigned

    def _enqueue(self, change: Change, shown: Stored) -> asyncio.Future[None]:
        assert self._loop is not None, "the state is not started"
        pending = _Pending(change, shown, self._loop.create_future())
        self._head[change.key] = pending.head
        self._pending.append(pending)
        self.store.write(self._epoch, change)
        return pending.future

    def _committed(self, batch: list[Change], error: Exception | None) -> None:
        if error is not None:
            self._fail(len(batch), error)
            return
        self.failing = ""
        changed: dict[Table, None] = {}
        for change in batch:
            pending = self._pending.popleft()
            assert pending.change is change, "changes are committed in the order they were made"
            if self._head.get(change.key, ...) is pending.head:
                del self._head[change.key]
            changed[self._publish(pending)] = None
            if not pending.future.done():
                pending.future.set_result(None)
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None
        for table in changed:
            table.tell()

    def _fail(self, count: int, error: Exception) -> None:
        """Nothing of this batch is stored, and the store refuses what was queued behind it: it may build on it."""
        if not isinstance(error, StoreOutdated):
            self._epoch += 1
            self.failing = str(error)
        for pending in [self._pending.popleft() for _ in range(count)]:
            self._head.pop(pending.change.key, None)
            if not pending.future.done():
                text = f"the state could not be written to {self.store.place}: {error}"
                pending.future.set_exception(StatusError(500, text))
                pending.future.exception()  # read by the handler if it is still there

    def _publish(self, pending: _Pending) -> Table:
        key, shown = pending.change.key, pending.shown
        table = self.table(key.resource)
        path = path_of(key)
        previous = table.objects.get(path)
        self.version = shown.version
        self._index(previous, pending.head)
        if pending.head is None:
            table.remove(path)
            kind = DELETED
        else:
            table.put(path, shown)
            kind = ADDED if previous is None else MODIFIED
        event = Event(kind, shown, previous, self.clock.now())
        self._history.add(table, event)
        table.untold.append(event)
        for listener in self.listeners:
            listener(event)
        return table

    def _index(self, previous: Stored | None, current: Stored | None) -> None:
        if previous is not None and (current is None or previous.owners != current.owners):
            for owner in previous.owners:
                keys = self.dependents.get(owner)
                if keys is not None:
                    keys.discard(previous.key)
                    if not keys:
                        del self.dependents[owner]
        if current is None:
            if previous is not None:
                self.uids.pop(previous.uid, None)
            return
        self.uids[current.uid] = current.key
        for owner in current.owners:
            self.dependents.setdefault(owner, set()).add(current.key)

    # Forgetting

    def compact(self) -> None:
        """Forget what is older than the window; called now and then."""
        self._history.forget_before(self.clock.now())
        if not self._history:
            for table in self.tables.values():
                table.floor = max(table.floor, self.version)

    def drop_table(self, resource: str) -> None:
        """The type is gone: end its watches."""
        table = self.tables.pop(resource, None)
        if table is not None:
            table.end_watches()

    def end_watches(self) -> None:
        for table in self.tables.values():
            table.end_watches()
