"""A source: a resource to watch, how its objects are decoded and indexed, and the store that they are kept in.

Controllers that read the same kind share one `Source`, which costs one watch. How a controller maps its objects to keys
is said where the controller is made (`Watches`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from trainwright.api.resources import Resource
from trainwright.controlloop.outcome import Key
from trainwright.controlloop.store import Delta, Index, Object, Store, key_of

T = TypeVar("T", bound=Object)
KeysOf = Callable[[Any], Iterable[Key]]
Listener = Callable[[Delta[Any]], None]


class Source(Generic[T]):
    """Objects of one kind, in one namespace or in all, optionally selected by labels or fields, decoded to `decode`."""

    def __init__(
        self,
        resource: Resource,
        decode: type[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        indexes: Mapping[str, Index[T]] | None = None,
        thin: Callable[[T], T] | None = None,
    ) -> None:
        self.resource = resource
        self.decode = decode
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.metadata_only = metadata_only
        self.thin = thin  # drops what nobody reads from the store, before it is stored
        self.store: Store[T] = Store(indexes)
        self.trouble = ""
        """Why the store cannot be relied on: the type is not served, may not be read, or cannot be decoded. Empty when
        it can. An API server that is away for a moment does not count.
        """
        self.listed_version = ""
        """The version that the last complete list showed."""
        self.shown_version = "0"
        """The latest version that a list or an event showed: whatever is older and not in the store is gone."""
        self._synced = asyncio.Event()
        self._answered = asyncio.Event()
        self._list_listeners: list[Callable[[], None]] = []
        self._listeners: list[Listener] = []
        self._trouble_listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Source({self.resource.group_resource})"

    @property
    def is_synced(self) -> bool:
        """Whether the store has had a complete list, or the type is not served."""
        return self._synced.is_set()

    @property
    def is_answered(self) -> bool:
        """Whether the API server has answered about this type: with a first list, or why there is none."""
        return self.is_synced or bool(self.trouble)

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def wait_answered(self) -> None:
        await self._answered.wait()

    def listen(self, listener: Listener) -> None:
        """Called for every change of the store, in order, on the loop. Must not block."""
        self._listeners.append(listener)

    def listen_lists(self, listener: Callable[[], None]) -> None:
        """Called after every complete list, when the store shows it."""
        self._list_listeners.append(listener)

    def listen_answers(self, listener: Callable[[], None]) -> None:
        """Called after the first list, and whenever `trouble` has changed."""
        self._trouble_listeners.append(listener)

    # The informer's side

    def publish(self, deltas: Iterable[Delta[T]]) -> None:
        for delta in deltas:
            for listener in self._listeners:
                listener(delta)

    def listed(self, version: str) -> None:
        """The store shows a new complete list."""
        self.listed_version = self.shown_version = version
        for listener in self._list_listeners:
            listener()

    def synced(self, trouble: str = "") -> None:
        """The store has a complete list. With `trouble`, it is empty because the type is not served."""
        first = not self.is_synced
        self._synced.set()
        self._tell(trouble, first=first)

    def troubled(self, trouble: str) -> None:
        """The store has the last known objects, if any."""
        self._tell(trouble, first=False)

    def _tell(self, trouble: str, *, first: bool) -> None:
        changed = self.trouble != trouble
        self.trouble = trouble
        if self.is_answered:
            self._answered.set()
        if changed or first:
            for listener in self._trouble_listeners:
                listener()


class Watches:
    """A source of one controller, and the keys to reconcile when one of its objects changes. With `new_first`, an
    object that was created comes before whatever else waits: somebody waits for what it asks for. A change for which
    `is_known` holds reconciles nothing.
    """

    def __init__(
        self,
        source: Source[Any],
        keys_of: KeysOf | None = None,
        *,
        new_first: bool = False,
        is_known: Callable[[Delta[Any]], bool] = lambda delta: False,
    ) -> None:
        self.source = source
        self.new_first = new_first
        self.is_known = is_known
        self.keys_of: KeysOf = keys_of or itself


def itself(thing: Object) -> Iterable[Key]:
    """The object's own key."""
    return (key_of(thing),)


def controlled_by(kind: str) -> KeysOf:
    """The key of the controlling owner of that kind, in the object's own namespace."""

    def keys_of(thing: Any) -> Iterable[Key]:
        for reference in thing.metadata.owner_references or ():
            if reference.controller and reference.kind == kind:
                yield Key(thing.metadata.namespace or "", reference.name)

    return keys_of
