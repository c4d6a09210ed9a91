"""Namespaces: no object without one, none into one that ends, and the end itself.

In: events of namespaces (a deletion that waits). Out: the contents deleted, the `kubernetes` finalizer taken off, the
namespace gone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.controllers.namespaceconditions import conditions_of, merged
from trainwright.embedded.apiserver.controllers.peers import NAMESPACES
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.operations import deletion, writing
from trainwright.embedded.apiserver.operations.writing import SYSTEM, WriteOptions
from trainwright.embedded.apiserver.storage.state import Event, Stored
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

CONTROLLER = WriteOptions(manager="kube-controller-manager")
log = logging.getLogger(__name__)


def namespace_key(name: str) -> Key:
    return Key("namespaces", "", name)


class Namespaces:
    """The admission check, and the controller that empties ending namespaces."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._ending: set[str] = set()
        self._wake = asyncio.Event()

    def check_create(self, served: Type, namespace: str, name: str) -> None:
        stored = self.api.state.head(namespace_key(namespace))
        if stored is None:
            raise errors.not_found("", "namespaces", namespace)
        if stored.deleting:
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            refused = errors.forbidden(served.group, served.plural, name, text)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            assert refused.details is not None
            refused.details["causes"] = [cause]
            raise refused

    # ------------------------------------------------------------------------------------------------ ending

    def observe(self, event: Event) -> None:
        if event.current.key.resource == "namespaces" and event.current.deleting and event.type != "DELETED":
            self._ending.add(event.current.key.name)
            self._wake.set()
        elif event.type == "DELETED" and event.current.key.namespace in self._ending:
            self._wake.set()

    def start(self) -> None:
        for stored in self.api.state.table("namespaces").objects.values():
            if stored.deleting:
                self._ending.add(stored.key.name)
        self.api.state.listeners.append(self.observe)
        self._wake.set()

    async def run(self) -> None:
        """Empties ending namespaces until cancelled. What cannot go yet (finalizers, pods with grace) is looked at
        again."""
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), 1.0 if self._ending else None)
            except TimeoutError:
                pass
            self._wake.clear()
            if self._ending:
                await self.api.peers.give_way(NAMESPACES)
            for name in sorted(self._ending):
                try:
                    if await self._empty(name):
                        self._ending.discard(name)
                except StatusError as error:
                    log.info("namespace %s cannot be removed yet: %s", name, error)
            await asyncio.sleep(0.01)  # let a burst of deletions gather

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
                        await deletion.delete(
                            api, served, item.key, deletion.DeleteOptions(policy="Background"), SYSTEM
                        )
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
            conditions = merged(status.get("conditions") or [], conditions_of(left))
            if conditions is None:
                raise writing.Unchanged
            status["conditions"] = conditions
            return obj

        await writing.update(
            self.api, served, namespace_key(name), with_conditions, CONTROLLER, SYSTEM, subresource="status", retry=True
        )

    async def _finalize(self, name: str) -> None:
        served = self.api.registry.find("", "v1", "namespaces")
        assert served is not None

        def without_finalizer(obj: Json | None) -> Json:
            assert obj is not None
            finalizers = [f for f in (obj.get("spec") or {}).get("finalizers") or [] if f != "kubernetes"]
            obj["spec"] = {"finalizers": finalizers} if finalizers else {}
            return obj

        await finalize(self.api, served, name, without_finalizer, CONTROLLER)


async def finalize(api: Api, served: Type, name: str, compute: writing.Compute, options: WriteOptions) -> Json:
    """The `finalize` subresource: an update but for the status; without finalizers, and deleted, the namespace goes."""
    key = namespace_key(name)
    stored = api.state.head(key)
    if stored is None:
        raise errors.not_found("", "namespaces", name)
    before = served.whole_object(stored.data)
    obj = compute(served.whole_object(stored.data))
    meta = obj["metadata"]
    if meta.get("resourceVersion") and meta["resourceVersion"] != str(stored.version):
        raise errors.conflict("", "namespaces", name, errors.MODIFIED)
    obj["status"] = before.get("status", {})
    served.field_manager("finalize").update(before, obj, options.manager, metadata.now_text())
    metadata.carry_over(meta, before["metadata"])
    meta["resourceVersion"] = str(stored.version)
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    faults = metadata.validate_update(meta, before["metadata"], namespaced=False)
    faults += metadata.finalizer_faults(finalizers, "spec.finalizers")
    if faults:
        raise errors.invalid("", "Namespace", name, faults)
    obj["spec"] = {"finalizers": finalizers} if finalizers else {}
    if options.dry_run:
        return obj
    if stored.deleting and not finalizers and not meta.get("finalizers"):
        _, future = api.state.delete(key, obj)
        await asyncio.shield(future)
        return obj
    if obj != before:
        _, future = api.state.put(key, obj)
        await asyncio.shield(future)
    return obj


async def ensure(api: Api, name: str) -> None:
    """Make a namespace every server has."""
    if api.state.head(namespace_key(name)) is not None:
        return
    served = api.registry.find("", "v1", "namespaces")
    assert served is not None
    obj: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "spec": {}, "status": {}}
    served.strategy.default(obj)
    await writing.create(api, served, "", obj, WriteOptions(manager="trainwright"), SYSTEM)
