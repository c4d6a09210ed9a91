"""The objects of one kind as of the last list and watch event: one writer, many readers.

In: complete lists and single events. Out: `Delta`s (old, new), which controllers map to keys. Objects that were deleted
while the watch was disconnected are missing from the next list and reported as deleted then. Readers see either the old
list or the new one, never a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from trainwright.controlloop.outcome import Key


class Metadata(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class Object(Protocol):
    """What the store needs of an object: a msgspec Struct with this metadata."""

    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=Object)
Index = Callable[[T], Iterable[str]]


class Delta(NamedTuple, Generic[T]):
    """One object's change: (None, new) was created, (old, None) deleted, (old, new) changed.

    Of a deleted object, `old` is its last state where the watch told of the deletion. Where it vanished between two
    lists nobody `witnessed` that, and `old` is only the last state that was seen.
    """

    old: T | None
    new: T | None
    witnessed: bool = True


def key_of(thing: Object) -> Key:
    return Key(thing.metadata.namespace or "", thing.metadata.name)


class Store(Generic[T]):
    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._index_functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._index_functions}

    # Reading

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def keys(self) -> Iterable[Key]:
        return list(self._objects)

    def by(self, index: str, value: str) -> list[T]:
        """The objects for which the index's function returned `value`, in the order they were added."""
        return [self._objects[key] for key in self._indexes[index].get(value, ())]

    def has(self, index: str, value: str) -> bool:
        """Whether there is any such object."""
        return value in self._indexes[index]

    # Writing: the informer only

    def put(self, new: T) -> Delta[T] | None:
        """An object was created or changed. None when the store has this version already."""
        key = key_of(new)
        old = self._objects.get(key)
        if old is not None and _same_version(old, new):
            return None
        self._replace(key, old, new)
        return Delta(old, new)

    def remove(self, gone: T) -> Delta[T] | None:
        """An object was deleted; its last state goes into the delta."""
        key = key_of(gone)
        old = self._objects.get(key)
        if old is None:
            return None
        self._replace(key, old, None)
        return Delta(gone if gone.metadata.uid == old.metadata.uid else old, None)

    def replace(self, objects: Iterable[T]) -> list[Delta[T]]:
        """A complete list: objects that are not in it are deleted. One with the same name and another uid counts as
        deleted and created.
        """
        fresh = {key_of(thing): thing for thing in objects}
        deltas: list[Delta[T]] = []
        for key, old in list(self._objects.items()):
            new = fresh.get(key)
            if new is None or new.metadata.uid != old.metadata.uid:
                self._replace(key, old, None)
                deltas.append(Delta(old, None, witnessed=False))
        for new in fresh.values():
            delta = self.put(new)
            if delta is not None:
                deltas.append(delta)
        return deltas

    def _replace(self, key: Key, old: T | None, new: T | None) -> None:
        for name, function in self._index_functions.items():
            index = self._indexes[name]
            if old is not None:
                for value in function(old):
                    entry = index.get(value)
                    if entry is not None:
                        entry.pop(key, None)
                        if not entry:
                            del index[value]
            if new is not None:
                for value in function(new):
                    index.setdefault(value, {})[key] = None
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new


def _same_version(old: Object, new: Object) -> bool:
    return bool(new.metadata.resource_version) and (
        old.metadata.resource_version == new.metadata.resource_version and old.metadata.uid == new.metadata.uid
    )
