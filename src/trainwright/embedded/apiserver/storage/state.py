"""All objects in memory, with a window of history: what every read and watch is answered from.

In: writes made by handlers on the event loop. Out: committed objects, events in version order, and indexes by owner
and UID.

A write is computed against the *head* (committed state plus what is on its way to disk), so that writers follow one
another without waiting; reads and watches see *committed* state only. If the disk refuses a batch, the head falls back
to what is committed and every write that was queued behind it fails with it.

Invariants: version order = commit order = event order; an object's bytes never change once stored; `keys` of a table
is sorted.
"""

from __future__ import annotations

import asyncio
import bisect
import collections
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.storage.store import Key, Row, Store, StoreOutdated, Write
from trainwright.schema.jsonobject import Json

HISTORY_SECONDS = 300.0
HISTORY_EVENTS = 20_000
HISTORY_BYTES = 32 * 2**20
TELL_PAUSE = 3.0  # times as long as telling the watchers took: they get a quarter of the loop's time
LONGEST_TELL_PAUSE = 0.05

encode = msgspec.json.encode
decode = msgspec.json.decode

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class _Envelope(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_read_envelope = msgspec.json.Decoder(_Envelope).decode


class Stored(msgspec.Struct, gc=False, frozen=True):
    """One version of one object. `data` is its JSON without apiVersion and kind: they depend on who asks."""

    key: Key
    version: int
    data: bytes
    uid: str
    labels: dict[str, str] | None
    owners: tuple[str, ...]
    deleting: bool

    def decode(self) -> Json:
        """A fresh copy to change at will."""
        return decode(self.data)  # type: ignore[no-any-return]


def stored_from(key: Key, version: int, data: bytes) -> Stored:
    metadata = _read_envelope(data).metadata
    owners = tuple(owner.uid for owner in metadata.owner_references or ())
    return Stored(
        key, version, data, metadata.uid, metadata.labels or None, owners, metadata.deletion_timestamp is not None
    )


class Event:
    """One change, kept while the window lasts. `frames` caches its bytes for watchers, one entry for each form asked
    for."""

    __slots__ = ("current", "frames", "previous", "time", "type", "version")

    def __init__(self, type: str, current: Stored, previous: Stored | None) -> None:
        self.type = type
        self.version = current.version
        self.current = current
        self.previous = previous
        self.time = time.monotonic()
        self.frames: dict[Any, bytes] = {}


class Watcher(Protocol):
    def deliver(self, events: list[Event]) -> None: ...

    def close(self) -> None: ...


class Table:
    """The objects of one resource, whatever versions it is served in."""

    def __init__(self, resource: str, floor: int) -> None:
        self.resource = resource
        self.objects: dict[str, Stored] = {}
        self.keys: list[str] = []
        self.events: collections.deque[Event] = collections.deque()
        self.floor = floor  # events up to this version are forgotten
        self.watchers: dict[Watcher, None] = {}
        self.untold: list[Event] = []  # committed, not sent yet
        self._quiet_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Events go to the watchers in bunches, so that many watchers never take more than their share of the loop.

        A write to a socket costs the same for one event as for ten: the longer the last bunch took to send, the
        longer the next one gathers. With few watchers that is no time at all.
        """
        if self._timer is not None:
            return
        pause = self._quiet_until - time.monotonic()
        if pause > 0:
            self._timer = loop.call_later(pause, self.tell_now)
        else:
            self.tell_now()

    def tell_now(self) -> None:
        """Before a watcher joins, leaves or is told a version: each hears of every event once, and in order."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.untold:
            return
        events, self.untold = self.untold, []
        began = time.monotonic()
        for watcher in tuple(self.watchers):
            watcher.deliver(events)
        now = time.monotonic()
        self._quiet_until = now + min(TELL_PAUSE * (now - began), LONGEST_TELL_PAUSE)

    def put(self, path: str, stored: Stored) -> None:
        if path not in self.objects:
            bisect.insort(self.keys, path)
        self.objects[path] = stored

    def remove(self, path: str) -> None:
        if self.objects.pop(path, None) is not None:
            del self.keys[bisect.bisect_left(self.keys, path)]

    def select(self, namespace: str, after: str = "") -> Iterator[Stored]:
        """In storage order, all namespaces if `namespace` is empty, from the key behind `after` on."""
        start = namespace + "/" if namespace else ""
        at = bisect.bisect_right(self.keys, after) if after else bisect.bisect_left(self.keys, start)
        for index in range(at, len(self.keys)):
            path = self.keys[index]
            if start and not path.startswith(start):
                return
            yield self.objects[path]

    def at(self, version: int, namespace: str, after: str = "") -> list[Stored]:
        """The same as it was at `version`: the present with later events undone."""
        found = {path_of(stored.key): stored for stored in self.select(namespace)}
        for event in reversed(self.events):
            if event.version <= version:
                break
            if namespace and event.current.key.namespace != namespace:
                continue
            path = path_of(event.current.key)
            if event.previous is None:
                found.pop(path, None)
            else:
                found[path] = event.previous
        return [found[path] for path in sorted(found) if path > after]


def path_of(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


class State:
    """Tables by resource, and the one way to change them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tables: dict[str, Table] = {}
        self.version = 0  # of the last committed write
        self.dependents: dict[str, set[Key]] = {}  # owner UID → keys that name it
        self.uids: dict[str, Key] = {}
        self.listeners: list[Callable[[Event], None]] = []
        self._assigned = 0  # of the last write made, committed or not
        self._epoch = 0  # failed batches heard of
        self._head: dict[Key, Stored | None] = {}  # writes on their way to disk
        self._waiting: collections.deque[tuple[int, Stored | None, Key, asyncio.Future[None]]] = collections.deque()
        self._history: collections.deque[tuple[Table, Event]] = collections.deque()
        self._history_bytes = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._progress = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ life

    def load(self) -> None:
        for row in self.store.load():
            self._load(row)
        # A version that never reached the disk was never acknowledged, nor seen by a watcher: only committed events
        # are sent. So the log's last key is where to go on.
        self.version = self._assigned = self.store.last_version()
        for table in self.tables.values():
            table.floor = self.version

    def _load(self, row: Row) -> None:
        stored = stored_from(row.key, row.version, row.value)
        self.table(row.key.resource).put(path_of(row.key), stored)
        self._index(None, stored)

    def start(self) -> None:
        loop = self._loop = asyncio.get_running_loop()

        def committed(batch: list[Write], error: Exception | None) -> None:
            loop.call_soon_threadsafe(self._committed, batch, error)

        self.store.start(committed)

    def forget_history(self) -> None:
        """Watches must start from here on: used once the objects every server has are in place."""
        for table in self.tables.values():
            table.events.clear()
            table.floor = self.version
        self._history.clear()
        self._history_bytes = 0

    # ------------------------------------------------------------------------------------------------ reading

    def table(self, resource: str) -> Table:
        table = self.tables.get(resource)
        if table is None:
            table = self.tables[resource] = Table(resource, self.version)
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
        deadline = asyncio.get_running_loop().time() + seconds
        while self.version < version:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), left)
            except TimeoutError:
                return False
        return True

    # ------------------------------------------------------------------------------------------------ writing

    def put(self, key: Key, obj: Json) -> tuple[Stored, asyncio.Future[None]]:
        """Give the object the next version and send it to disk; the future is done when it is there."""
        version = self._next()
        stored = _stored(key, version, obj)
        return stored, self._enqueue(version, key, stored, stored.data)

    def delete(self, key: Key, obj: Json) -> tuple[Stored, asyncio.Future[None]]:
        """Remove the object; `obj` is its last state, which the watchers see with the deletion's version."""
        version = self._next()
        stored = _stored(key, version, obj)
        future = self._enqueue(version, key, None, None)
        self._waiting[-1] = (version, stored, key, future)
        return stored, future

    def _next(self) -> int:
        self._assigned += 1
        return self._assigned

    def _enqueue(self, version: int, key: Key, stored: Stored | None, data: bytes | None) -> asyncio.Future[None]:
        assert self._loop is not None
        future: asyncio.Future[None] = self._loop.create_future()
        self._head[key] = stored
        self._waiting.append((version, stored, key, future))
        self.store.write(self._epoch, Write(version, key, data))
        return future

    def _committed(self, batch: list[Write], error: Exception | None) -> None:
        if error is not None:
            self._fail(len(batch), error)
            return
        changed: dict[Table, None] = {}
        for write in batch:
            version, stored, key, future = self._waiting.popleft()
            assert version == write.version
            assert stored is not None
            if self._head.get(key, ...) is (None if write.value is None else stored):
                del self._head[key]
            changed[self._publish(key, stored, deleted=write.value is None)] = None
            if not future.done():
                future.set_result(None)
        self._progress.set()
        assert self._loop is not None
        for table in changed:
            table.tell(self._loop)

    def _fail(self, count: int, error: Exception) -> None:
        """Nothing of this batch is stored, and the store refuses what was queued behind it: it may build on it."""
        if not isinstance(error, StoreOutdated):
            self._epoch += 1
        failed = [self._waiting.popleft() for _ in range(count)]
        for _, _, key, future in failed:
            self._head.pop(key, None)
            if not future.done():
                text = f"the state could not be written to {self.store.path}: {error}"
                future.set_exception(StatusError(500, text))
                future.exception()  # read by the handler if it is still there

    def _publish(self, key: Key, stored: Stored, *, deleted: bool) -> Table:
        table = self.table(key.resource)
        path = path_of(key)
        previous = table.objects.get(path)
        self.version = stored.version
        if deleted:
            table.remove(path)
            event = Event(DELETED, stored, previous)
            self._index(previous, None)
        else:
            table.put(path, stored)
            event = Event(ADDED if previous is None else MODIFIED, stored, previous)
            self._index(previous, stored)
        self._remember(table, event)
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

    # ------------------------------------------------------------------------------------------------ history

    def _remember(self, table: Table, event: Event) -> None:
        table.events.append(event)
        self._history.append((table, event))
        self._history_bytes += len(event.current.data)
        while len(self._history) > HISTORY_EVENTS or self._history_bytes > HISTORY_BYTES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        table, event = self._history.popleft()
        self._history_bytes -= len(event.current.data)
        if table.events and table.events[0] is event:
            table.events.popleft()
            table.floor = event.version

    def compact(self) -> None:
        """Forget what is older than the window; called now and then."""
        limit = time.monotonic() - HISTORY_SECONDS
        while self._history and self._history[0][1].time < limit:
            self._forget_oldest()
        if self._history:
            return
        for table in self.tables.values():
            table.floor = max(table.floor, self.version)

    def drop_table(self, resource: str) -> None:
        """The type is gone: end its watches."""
        table = self.tables.pop(resource, None)
        if table is not None:
            table.tell_now()
            for watcher in tuple(table.watchers):
                watcher.close()


def _stored(key: Key, version: int, obj: Json) -> Stored:
    metadata = obj["metadata"]
    metadata["resourceVersion"] = str(version)
    body = {name: value for name, value in obj.items() if name != "apiVersion" and name != "kind"}
    references = metadata.get("ownerReferences")
    owners = tuple(str(reference.get("uid", "")) for reference in references) if references else ()
    labels = metadata.get("labels") or None
    return Stored(key, version, encode(body), metadata.get("uid", ""), labels, owners, "deletionTimestamp" in metadata)
