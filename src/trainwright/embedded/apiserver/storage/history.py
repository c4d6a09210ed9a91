"""The window of events that watches and lists of the past are served from: the last minutes, within a size."""

from __future__ import annotations

import collections

import msgspec

from trainwright.embedded.apiserver.storage.table import Event, Table


class Window(msgspec.Struct, frozen=True):
    """How far back a watch may start."""

    seconds: float = 300.0
    events: int = 20_000
    bytes: int = 32 * 2**20


WINDOW = Window()


class History:
    """The events of all tables, oldest first. What leaves the window leaves its table, too."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._events: collections.deque[tuple[Table, Event]] = collections.deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    def add(self, table: Table, event: Event) -> None:
        table.events.append(event)
        self._events.append((table, event))
        self._bytes += len(event.current.data)
        while len(self._events) > self._window.events or self._bytes > self._window.bytes:
            self._forget_oldest()

    def forget_before(self, now: float) -> None:
        while self._events and self._events[0][1].time < now - self._window.seconds:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        table, event = self._events.popleft()
        self._bytes -= len(event.current.data)
        if table.events and table.events[0] is event:
            table.events.popleft()
            table.floor = event.version
