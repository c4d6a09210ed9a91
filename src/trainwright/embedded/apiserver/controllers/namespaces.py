"""The end of a namespace: its contents deleted, the `kubernetes` finalizer taken off, the namespace gone.

In: events of namespaces that are being deleted, and of what goes from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.controllers.namespaceconditions import conditions_of, merged
from trainwright.embedded.apiserver.controllers.peers import NAMESPACES
from trainwright.embedded.apiserver.controllers.worklist import Worklist
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.operations import deletion, writing
from trainwright.embedded.apiserver.operations.deletion import BACKGROUND, Deletion
from trainwright.embedded.apiserver.operations.finalizing import finalize
from trainwright.embedded.apiserver.operations.namespaces import namespace_key
from trainwright.embedded.apiserver.operations.writes import WriteOptions
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
        api = self.api
        stored = api.state.head(namespace_key(name))
        if stored is None:
            return True
        left: list[tuple[Type, Stored]] = []
        for table in list(api.state.tables.values()):
            found = list(table.select(name))
            if not found:
                continue
            served = api.registry.by_resource(table.resource)
            if served is None or not served.namespaced:
                continue
            for item in found:
                if not item.deleting:
                    try:
                        await deletion.delete(api, Deletion(served, item.key, SYSTEM, BACKGROUND))
                    except StatusError as error:
                        if error.code != 404:
                            raise
                head = api.state.head(item.key)
                if head is not None:
                    left.append((served, head))
        await self._report(name, left)
        if left:
            return False
        await self._finalize(name)
        return api.state.head(namespace_key(name)) is None

    async def _report(self, name: str, left: list[tuple[Type, Stored]]) -> None:
        """Tell in the namespace's status what keeps it."""
        served = self.api.registry.find("", "v1", "namespaces")
        assert served is not None

        def with_conditions(obj: Json | None) -> Json:
            assert obj is not None
            status = obj.setdefault("status", {})
            conditions = merged(status.get("conditions") or [], conditions_of(left), self.api.now())
            if conditions is None:
                raise writing.Unchanged
            status["conditions"] = conditions
            return obj

        await writing.update(
            self.api, served, namespace_key(name), with_conditions, OPTIONS, SYSTEM, subresource="status", retry=True
        )

    async def _finalize(self, name: str) -> None:
        served = self.api.registry.find("", "v1", "namespaces")
        assert served is not None

        def without_finalizer(obj: Json | None) -> Json:
            assert obj is not None
            finalizers = [f for f in (obj.get("spec") or {}).get("finalizers") or [] if f != "kubernetes"]
            obj["spec"] = {"finalizers": finalizers} if finalizers else {}
            return obj

        await finalize(self.api, served, name, without_finalizer, OPTIONS)
