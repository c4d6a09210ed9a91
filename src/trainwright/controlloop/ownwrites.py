"""Our own writes of one kind, remembered until the watch shows them.

A store lags behind the API server by as much as its watch does. Who has just written an object knows better: `get`
gives the newer of the two, so that a pass never acts on a state from before our own last write. A write is forgotten
as soon as the store shows the same version or a later one, the object's deletion, or a complete list of that version
or a later one without the object. It is a memory of what happened, never a promise: preconditions on uid and version
still guard every write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from trainwright.controlloop.outcome import Key
from trainwright.controlloop.source import Source
from trainwright.controlloop.store import Delta, Object, key_of

T = TypeVar("T", bound=Object)


class OwnWrites(Generic[T]):
    """`settled` is called with the key of a write that a list has overtaken: nobody else would tell of it."""

    def __init__(self, source: Source[T], settled: Callable[[Key], None] = lambda key: None) -> None:
        self._source = source
        self._settled = settled
        self._written: dict[Key, T] = {}
        self._shown: Delta[T] | None = None  # the last change that showed exactly what we wrote
        source.listen(self._changed)
        source.listen_lists(self._listed)

    def __len__(self) -> int:
        return len(self._written)

    def remember(self, thing: T) -> None:
        """The API server's answer to a write of ours."""
        key = key_of(thing)
        stored = self._source.store.get(key)
        passed = stored is None and _is_at_least(self._source.shown_version, thing.metadata.resource_version)
        if not passed and (stored is None or not _is_shown_by(thing, stored)):
            self._written[key] = thing

    def get(self, key: Key) -> T | None:
        """The object as it is by the store, or by our own last write where that is newer."""
        written = self._written.get(key)
        return self._source.store.get(key) if written is None else written

    def is_shown_by(self, delta: Delta[T]) -> bool:
        """Whether a change of the store that is being told is a write of ours and nothing more: the pass that wrote it
        knew it already. Ask in a listener of the same source that was added after this one.
        """
        return self._shown is delta

    def _changed(self, delta: Delta[T]) -> None:
        seen = delta.new or delta.old
        assert seen is not None
        written = self._written.get(key_of(seen))
        if written is None:
            return
        if delta.new is not None and delta.new.metadata.resource_version == written.metadata.resource_version:
            self._shown = delta
        gone = delta.new is None and seen.metadata.uid == written.metadata.uid
        if gone or (delta.new is not None and _is_shown_by(written, delta.new)):
            del self._written[key_of(seen)]

    def _listed(self) -> None:
        listed = self._source.listed_version
        for key, written in list(self._written.items()):
            if self._source.store.get(key) is None and _is_at_least(listed, written.metadata.resource_version):
                del self._written[key]
                self._settled(key)


def _is_shown_by(written: Object, shown: Object) -> bool:
    """Whether the watch has caught up with a write: with the very object, or with one that came after it."""
    return _is_at_least(shown.metadata.resource_version, written.metadata.resource_version)


def _is_at_least(version: str, other: str) -> bool:
    """Versions of one kind grow. Where one is not a number, they say nothing about order, and we wait no longer."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return True
