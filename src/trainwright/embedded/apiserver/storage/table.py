"""The objects of one resource: sorted by key, with the window of events that watches start from.

Invariants: version order = commit order = event order; `keys` is sorted.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Iterator
from typing import Any, Protocol

from trainwright.clock import Clock, Timer
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.store import Key

TELL_PAUSE = 3.0  # times as long as telling the watchers took: they get a quarter of the loop's time
LONGEST_TELL_PAUSE = 0.05

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Event:
    """One change, kept while the window lasts. `lines` caches its bytes for watchers, by the form they asked for."""

    __slots__ = ("current", "lines", "previous", "time", "type", "version")

    def __init__(self, type: str, current: Stored, previous: Stored | None, time: float) -> None:
        self.type = type
        self.version = current.version
        self.current = current
        self.previous = previous
        self.time = time
        self.lines: dict[Any, bytes] = {}


class Watcher(Protocol):
    def deliver(self, events: list[Event]) -> None: ...

    def close(self) -> None: ...


class Table:
    """The objects of one resource, whatever versions it is served in."""

    def __init__(self, resource: str, floor: int, clock: Clock) -> None:
        self.resource = resource
        self._clock = clock
        self.objects: dict[str, Stored] = {}
        self.keys: list[str] = []
        self.events: collections.deque[Event] = collections.deque()
        self.floor = floor  # events up to this version are forgotten
        self.watchers: dict[Watcher, None] = {}
        self.untold: list[Event] = []  # committed, not sent yet
        self._quiet_until = 0.0
        self._timer: Timer | None = None

    def tell(self) -> None:
        """Events go to the watchers in bunches, so that many watchers never take more than their share of the loop.

        A write to a socket costs the same for one event as for ten: the longer the last bunch took to send, the
        longer the next one gathers. With few watchers that is no time at all.
        """
        if self._timer is not None:
            return
        pause = self._quiet_until - self._clock.now()
        if pause > 0:
            self._timer = self._clock.call_later(pause, self.tell_now)
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
        began = self._clock.now()
        for watcher in tuple(self.watchers):
            watcher.deliver(events)
        now = self._clock.now()
        self._quiet_until = now + min(TELL_PAUSE * (now - began), LONGEST_TELL_PAUSE)

    def end_watches(self) -> None:
        self.tell_now()
        for watcher in tuple(self.watchers):
            watcher.close()

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
