"""The garbage collector: objects whose owners are gone, foreground deletion, orphaning.

In: every event. Out: deletes of dependents, owner references taken off, the finalizers `foregroundDeletion` and
`orphan` taken off. Level-based: it looks at a key and decides from the present state, so a lost wake-up only delays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.controllers.peers import COLLECTOR
from trainwright.embedded.apiserver.controllers.worklist import Worklist
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import FOREGROUND, ORPHAN, DeleteOptions, Deletion
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, in_place
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.storage.table import Event
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

OPTIONS = WriteOptions(manager="garbage-collector")
GATHER_SECONDS = 0.001  # a cascade arrives in bursts
AT_ONCE = 16


class GarbageCollector:
    name = "garbage collector"

    def __init__(self, api: Api) -> None:
        self.api = api
        self._work: Worklist[Key] = Worklist(self.name, api.clock, self.look_at, GATHER_SECONDS, at_once=AT_ONCE)

    def resync(self) -> None:
        self._work.clear()
        for table in self.api.state.tables.values():
            for stored in table.objects.values():
                if stored.owners or stored.deleting:
                    self._work.add(stored.key)

    async def run(self) -> None:
        await self._work.run(lambda: self.api.peers.give_way(COLLECTOR))

    def observe(self, event: Event) -> None:
        current = event.current
        if event.type == "DELETED":
            for key in self.api.state.dependents.get(current.uid, ()):
                self._work.add(key)
            for owner in current.owners:
                self._look_at_owner(owner)
            return
        if current.deleting:
            self._work.add(current.key)
        if current.owners and any(owner not in self.api.state.uids for owner in current.owners):
            self._work.add(current.key)
        if event.previous is not None and event.previous.owners != current.owners:
            for owner in event.previous.owners:
                self._look_at_owner(owner)

    def _look_at_owner(self, uid: str) -> None:
        key = self.api.state.uids.get(uid)
        if key is not None:
            stored = self.api.state.get(key)
            if stored is not None and stored.deleting:
                self._work.add(key)

    async def look_at(self, key: Key) -> bool:
        """Do what the object needs now; always done with it, since its next change brings it back."""
        try:
            await self._process(key)
        except StatusError as error:
            if error.code != 404:
                raise
        return True

    async def _process(self, key: Key) -> None:
        stored = self.api.state.head(key)
        served = self.api.registry.by_resource(key.resource)
        if stored is None or served is None:
            return
        if stored.deleting:
            finalizers = stored.decode()["metadata"].get("finalizers") or []
            if ORPHAN in finalizers:
                await self._orphan(served, stored)
                return
            if FOREGROUND in finalizers:
                await self._foreground(served, stored)
        elif stored.owners:
            await self._check_owners(served, stored)

    def _owner_exists(self, dependent: Stored, reference: Json) -> Stored | None:
        """The owner, if it lives where the reference says: same namespace or cluster-wide, same kind, name and UID."""
        key = self.api.state.uids.get(reference.get("uid", ""))
        if key is None or key.name != reference.get("name"):
            return None
        if key.namespace and key.namespace != dependent.key.namespace:
            return None
        owner = self.api.registry.by_resource(key.resource)
        group = reference.get("apiVersion", "").rpartition("/")[0]
        if owner is None or owner.kind != reference.get("kind") or owner.group != group:
            return None
        return self.api.state.head(key)

    async def _check_owners(self, served: Type, stored: Stored) -> None:
        references = stored.decode()["metadata"].get("ownerReferences") or []
        dangling: list[Json] = []
        waiting: list[Json] = []
        solid: list[Json] = []
        for reference in references:
            owner = self._owner_exists(stored, reference)
            if owner is None:
                dangling.append(reference)
            elif owner.deleting and FOREGROUND in (owner.decode()["metadata"].get("finalizers") or []):
                waiting.append(reference)
            else:
                solid.append(reference)
        if not dangling and not waiting:
            return
        if solid:
            await self._drop_references(served, stored, {r.get("uid", "") for r in (*dangling, *waiting)})
            return
        policy = "Background"
        if waiting and self._blocking_dependents(stored.uid):
            # Its own dependents hold it back in turn, so that the order holds all the way down.
            policy = "Foreground"
        options = DeleteOptions(policy=self._policy(stored, policy), uid=stored.uid)
        await deletion.delete(self.api, Deletion(served, stored.key, SYSTEM, options))

    @staticmethod
    def _policy(stored: Stored, policy: str) -> str:
        finalizers = stored.decode()["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            return "Orphan"
        return "Foreground" if FOREGROUND in finalizers else policy

    async def _drop_references(self, served: Type, stored: Stored, uids: set[str]) -> None:
        def drop(obj: Json) -> None:
            references = obj["metadata"].get("ownerReferences") or []
            _keep(obj["metadata"], "ownerReferences", [r for r in references if r.get("uid") not in uids])

        await self._change(served, stored, drop)

    def _blocking_dependents(self, uid: str) -> list[Key]:
        found = []
        for key in self.api.state.dependents.get(uid, ()):
            stored = self.api.state.head(key)
            if stored is None:
                continue
            for reference in stored.decode()["metadata"].get("ownerReferences") or []:
                if reference.get("uid") == uid and reference.get("blockOwnerDeletion"):
                    found.append(key)
        return found

    async def _foreground(self, served: Type, stored: Stored) -> None:
        for key in list(self.api.state.dependents.get(stored.uid, ())):
            dependent = self.api.state.head(key)
            kind = self.api.registry.by_resource(key.resource)
            if dependent is not None and kind is not None and not dependent.deleting:
                await self._check_owners(kind, dependent)
        if not self._blocking_dependents(stored.uid):
            await self._remove_finalizer(served, stored, FOREGROUND)

    async def _orphan(self, served: Type, stored: Stored) -> None:
        for key in list(self.api.state.dependents.get(stored.uid, ())):
            dependent = self.api.state.head(key)
            kind = self.api.registry.by_resource(key.resource)
            if dependent is not None and kind is not None:
                await self._drop_references(kind, dependent, {stored.uid})
        await self._remove_finalizer(served, stored, ORPHAN)

    async def _remove_finalizer(self, served: Type, stored: Stored, name: str) -> None:
        def remove(obj: Json) -> None:
            finalizers = obj["metadata"].get("finalizers") or []
            _keep(obj["metadata"], "finalizers", [finalizer for finalizer in finalizers if finalizer != name])

        await self._change(served, stored, remove)

    async def _change(self, served: Type, stored: Stored, change: Callable[[Json], None]) -> None:
        write = Write(served, stored.key, SYSTEM, OPTIONS, in_place(change), uid=stored.uid, recomputes=True)
        await update(self.api, write)


def _keep(meta: Json, name: str, kept: list[Any]) -> None:
    if kept:
        meta[name] = kept
    else:
        meta.pop(name, None)
