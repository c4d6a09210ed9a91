"""Objects that come with the package: put in place at start, through the same code as requests."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import metadata
from trainwright.embedded.apiserver.http.decoding import decode_object
from trainwright.embedded.apiserver.operations import writing
from trainwright.embedded.apiserver.operations.writing import SYSTEM, WriteOptions
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api


async def install(api: Api, served: Type, namespace: str, manifest: Json, options: WriteOptions) -> None:
    """A forced server-side apply: what the package ships wins over what an older version shipped."""
    config = copy.deepcopy(manifest)
    config.pop("status", None)
    config["metadata"].pop("creationTimestamp", None)
    name = config["metadata"]["name"]
    if namespace:
        config["metadata"]["namespace"] = namespace

    def compute(old: Json | None) -> Json:
        manager = served.field_manager()
        obj = manager.apply(old, manager.prepare(config), options.manager, metadata.now_text(), force=True)
        if obj is None:
            raise writing.Unchanged
        decoded, _ = decode_object(served, copy.deepcopy(obj))
        served.strategy.default(decoded)
        return decoded

    key = Key(served.resource, namespace, name)
    applied = writing.Application()
    await writing.update(api, served, key, compute, options, SYSTEM, applied=applied, allow_create=True, retry=True)
