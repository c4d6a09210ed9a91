"""The `finalize` subresource of namespaces, and the namespaces that every server has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.operations import writing
from trainwright.embedded.apiserver.operations.namespaces import namespace_key
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api


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
    served.field_manager("finalize").update(before, obj, options.manager, api.now())
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


async def ensure_namespace(api: Api, name: str) -> None:
    """Make a namespace every server has."""
    if api.state.head(namespace_key(name)) is not None:
        return
    served = api.registry.find("", "v1", "namespaces")
    assert served is not None
    obj: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "spec": {}, "status": {}}
    served.strategy.default(obj)
    await writing.create(api, served, "", obj, WriteOptions(manager="trainwright"), SYSTEM)
