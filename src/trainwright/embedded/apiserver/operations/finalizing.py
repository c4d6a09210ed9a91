"""The `finalize` subresource of namespaces, and the namespaces that every server has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import errors, metadata
from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.operations.creating import create
from trainwright.embedded.apiserver.operations.namespaces import namespace_key
from trainwright.embedded.apiserver.operations.storing import remove, store
from trainwright.embedded.apiserver.operations.writes import Write, WriteOptions, replacing
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api


async def finalize(api: Api, write: Write) -> Json:
    """An update but for the status; without finalizers, and deleted, the namespace goes."""
    served, key = write.served, write.key
    stored = api.state.head(key)
    if stored is None:
        raise errors.not_found("", "namespaces", key.name)
    before = served.whole_object(stored.data)
    wanted = write.compute(served.whole_object(stored.data))
    assert wanted is not None, "finalizing always says what it wants"
    obj = wanted.obj
    if obj["metadata"].get("resourceVersion") not in (None, "", str(stored.version)):
        raise errors.conflict("", "namespaces", key.name, errors.MODIFIED)
    _prepare(api, write, obj, before)
    obj["metadata"]["resourceVersion"] = str(stored.version)
    if write.options.dry_run:
        return obj
    if stored.deleting and not obj["spec"] and not obj["metadata"].get("finalizers"):
        await remove(api, key, obj)
    elif obj != before:
        await store(api, served, key, wanted)
    return obj


def _prepare(api: Api, write: Write, obj: Json, before: Json) -> None:
    """Only the finalizers of the spec and the metadata can change here; raises 422 if they are not good."""
    obj["status"] = before.get("status", {})
    write.served.field_manager("finalize").update(before, obj, write.options.manager, api.now())
    metadata.carry_over(obj["metadata"], before["metadata"])
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    faults = metadata.validate_update(obj["metadata"], before["metadata"], namespaced=False)
    faults += metadata.finalizer_faults(finalizers, "spec.finalizers")
    if faults:
        raise errors.invalid("", "Namespace", write.key.name, faults)
    obj["spec"] = {"finalizers": finalizers} if finalizers else {}


async def ensure_namespace(api: Api, name: str) -> None:
    """Make a namespace every server has."""
    if api.state.head(namespace_key(name)) is not None:
        return
    served = api.registry.find("", "v1", "namespaces")
    assert served is not None
    obj: Json = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "spec": {}, "status": {}}
    served.strategy.default(obj)
    options = WriteOptions(manager="trainwright")
    await create(api, Write(served, namespace_key(name), SYSTEM, options, replacing(obj), method="create"))
