"""Custom resource definitions: the types they declare are served while they are there, and emptied before they go.

In: events of CRDs. Out: the registry's custom types; for a CRD that is being deleted, its objects deleted and then its
clean-up finalizer taken off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.builtin.customresourcedefinitions import CLEANUP
from trainwright.embedded.apiserver.controllers.worklist import Worklist
from trainwright.embedded.apiserver.custom.kinds import types_of
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import BACKGROUND, Deletion
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, in_place
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.storage.table import DELETED, Event
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

OPTIONS = WriteOptions(manager="trainwright")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class CustomResources:
    name = "controller of custom resource definitions"

    def __init__(self, api: Api) -> None:
        self.api = api
        self._ending: Worklist[str] = Worklist(self.name, api.clock, self._end, gather=0.0)

    def resync(self) -> None:
        self._ending.clear()
        for stored in self.api.state.table(CRDS).objects.values():
            self._register(*_read(stored.data))
            if stored.deleting:
                self._ending.add(stored.key.name)

    def observe(self, event: Event) -> None:
        """Types come and go with the commit: whoever is told that a CRD was written finds its type served."""
        if event.current.key.resource != CRDS:
            return
        crd = event.current.decode()
        if event.type == DELETED:
            self._unregister(crd)
            return
        previous = event.previous.decode() if event.previous is not None else None
        if previous is None or previous["spec"] != crd["spec"] or event.current.deleting:
            self._register(crd, types_of(crd))
        if event.current.deleting:
            self._ending.add(event.current.key.name)

    def _register(self, crd: Json, types: list[Type]) -> None:
        registry, spec, resource = self.api.registry, crd["spec"], _resource(crd)
        if crd["metadata"].get("deletionTimestamp"):
            registry.terminating.add(resource)
        else:
            registry.terminating.discard(resource)
        registry.set_custom(spec["group"], spec["names"]["plural"], types)
        self.api.state.table(resource)

    def _unregister(self, crd: Json) -> None:
        spec, resource = crd["spec"], _resource(crd)
        self.api.registry.set_custom(spec["group"], spec["names"]["plural"], [])
        self.api.registry.terminating.discard(resource)
        self.api.state.drop_table(resource)

    async def run(self) -> None:
        await self._ending.run(_at_once)

    async def _end(self, name: str) -> bool:
        """Delete the objects, then let the CRD go. True when it is gone."""
        key = Key(CRDS, "", name)
        stored = self.api.state.head(key)
        if stored is None:
            return True
        if await self._delete_objects(_resource(stored.decode())):
            await self._change(key, _in_progress, "status")
            return False
        await self._change(key, _without_cleanup)
        return self.api.state.head(key) is None

    async def _delete_objects(self, resource: str) -> bool:
        """Whether some are left, held by finalizers."""
        served = self.api.registry.by_resource(resource)
        if served is None:
            return False
        objects = list(self.api.state.table(resource).objects.values())
        marked = [Deletion(served, item.key, SYSTEM, BACKGROUND) for item in objects if not item.deleting]
        await deletion.delete_all(self.api, marked)
        return any(self.api.state.head(item.key) is not None for item in objects)

    async def _change(self, key: Key, change: Callable[[Json], None], subresource: str = "") -> None:
        crds = self.api.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert crds is not None
        write = Write(crds, key, SYSTEM, OPTIONS, in_place(change), subresource=subresource, recomputes=True)
        await update(self.api, write)


@functools.lru_cache(maxsize=16)
def _read(data: bytes) -> tuple[Json, list[Type]]:
    """A stored CRD and its types. Servers that start from the same store, as in tests, share what they compile."""
    crd = msgspec.json.decode(data)
    return crd, types_of(crd)


def _resource(crd: Json) -> str:
    return f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"


def _without_cleanup(crd: Json) -> None:
    kept = [name for name in crd["metadata"].get("finalizers") or () if name != CLEANUP]
    crd["metadata"]["finalizers"] = kept
    if not kept:
        del crd["metadata"]["finalizers"]


def _in_progress(crd: Json) -> None:
    for condition in (crd.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Terminating":
            condition["reason"] = "InstanceDeletionInProgress"
            condition["message"] = "CustomResource deletion is in progress"


async def _at_once() -> None: ...
