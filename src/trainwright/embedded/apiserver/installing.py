"""Objects that come with the package: put in place at start, through the same code as requests."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.decoding import decode_object
from trainwright.embedded.apiserver.operations.finalizing import ensure_namespace
from trainwright.embedded.apiserver.operations.updating import update
from trainwright.embedded.apiserver.operations.writes import Wanted, Write, WriteOptions
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

OPTIONS = WriteOptions(manager="trainwright", force=True)


async def install(api: Api, manifests: Iterable[Json]) -> list[Key]:
    """A forced server-side apply of each: what the package ships wins over what an older version shipped."""
    keys = []
    for manifest in manifests:
        group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
        served = api.registry.by_kind(group, version, str(manifest.get("kind", "")))
        if served is None:
            raise StatusError(404, f"{manifest.get('apiVersion')} {manifest.get('kind')} is not a served type")
        namespace = manifest["metadata"].get("namespace", "default") if served.namespaced else ""
        if namespace:
            await ensure_namespace(api, namespace)
        key = Key(served.resource, namespace, manifest["metadata"]["name"])
        await _apply(api, served, key, manifest)
        keys.append(key)
    return keys


async def _apply(api: Api, served: Type, key: Key, manifest: Json) -> None:
    config = copy.deepcopy(manifest)
    config.pop("status", None)
    config["metadata"].pop("creationTimestamp", None)
    if key.namespace:
        config["metadata"]["namespace"] = key.namespace

    def compute(old: Json | None) -> Wanted | None:
        manager = served.field_manager()
        obj = manager.apply(old, manager.prepare(config), OPTIONS.manager, api.now(), force=True)
        if obj is None:
            return None
        decoded, _ = decode_object(served, copy.deepcopy(obj))
        served.strategy.default(decoded)
        return Wanted(decoded)

    write = Write(served, key, SYSTEM, OPTIONS, compute, method="apply", creates=True, recomputes=True)
    await update(api, write)
