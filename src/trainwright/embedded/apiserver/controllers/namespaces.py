"""The end of a namespace: its contents deleted, the `kubernetes` finalizer taken off, the namespace gone.

In: events of namespaces that are being deleted, and of what goes from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.controllers.namespaceconditions import conditions_of, merged
from trainwright.embedded.apiserver.controllers.peers import NAMESPACES
from trainwright.embedded.apiserver.controllers.worklist import Worklist
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import BACKGROUND, Deletion
from trainwright.embedded.apiserver.operations.finalizing import finalize
from trainwright.embedded.apiserver.operations.namespaces import namespace_key
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Compute, Wanted, Write, WriteOptions, in_place
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.storage.table import DELETED, Event
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

OPTIONS = WriteOptions(manager="kube-controller-manager")
GATHER_SECONDS = 0.01


class NamespaceController:
    """Empties namespaces that are being deleted; what cannot go yet (finalizers, pods with grace) comes again."""

    name = "namespace controller"

    def __init__(self, api: Api) -> None:
        self.api = api
        self._ending: Worklist[str] = Worklist(self.name, api.clock, self._empty, GATHER_SECONDS)

    def resync(self) -> None:
        self._ending.clear()
        for stored in self.api.state.table("namespaces").objects.values():
            if stored.deleting:
                self._ending.add(stored.key.name)

    def observe(self, event: Event) -> None:
        key = event.current.key
        if event.type == DELETED:
            if key.namespace in self._ending:
                self._ending.add(key.namespace)
        elif key.resource == "namespaces" and event.current.deleting:
            self._ending.add(key.name)

    async def run(self) -> None:
        await self._ending.run(lambda: self.api.peers.give_way(NAMESPACES))

    async def _empty(self, name: str) -> bool:
        """One pass over the contents; True when the namespace is gone."""
        key = namespace_key(name)
        if self.api.state.head(key) is None:
            return True
        left = await self._delete_contents(name)
        await self._report(name, left)
        if left:
            return False
        await self._finalize(name)
        return self.api.state.head(key) is None

    async def _delete_contents(self, name: str) -> list[tuple[Type, Stored]]:
        """What is left, held by finalizers or by a grace period."""
        state, left = self.api.state, []
        for table in list(state.tables.values()):
            found = list(table.select(name))
            served = self.api.registry.by_resource(table.resource) if found else None
            if served is None or not served.namespaced:
                continue
            to_go = [Deletion(served, item.key, SYSTEM, BACKGROUND) for item in found if not item.deleting]
            await deletion.delete_all(self.api, to_go)
            heads = [state.head(item.key) for item in found]
            left += [(served, head) for head in heads if head is not None]
        return left

    async def _report(self, name: str, left: list[tuple[Type, Stored]]) -> None:
        """Tell in the namespace's status what keeps it."""

        def with_conditions(namespace: Json | None) -> Wanted | None:
            assert namespace is not None
            status = namespace.setdefault("status", {})
            conditions = merged(status.get("conditions") or [], conditions_of(left), self.api.now())
            if conditions is None:
                return None
            status["conditions"] = conditions
            return Wanted(namespace)

        await update(self.api, self._write(name, with_conditions, "status"))

    async def _finalize(self, name: str) -> None:
        def without_finalizer(namespace: Json) -> None:
            finalizers = (namespace.get("spec") or {}).get("finalizers") or []
            kept = [finalizer for finalizer in finalizers if finalizer != "kubernetes"]
            namespace["spec"] = {"finalizers": kept} if kept else {}

        await finalize(self.api, self._write(name, in_place(without_finalizer), "finalize"))

    def _write(self, name: str, compute: Compute, subresource: str) -> Write:
        served = self.api.registry.find("", "v1", "namespaces")
        assert served is not None
        key = namespace_key(name)
        return Write(served, key, SYSTEM, OPTIONS, compute, subresource=subresource, recomputes=True)
