"""The last step of every write: the object goes to the state, and is answered when it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.operations.writes import Wanted
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api


async def store(api: Api, served: Type, key: Key, wanted: Wanted) -> None:
    """Afterwards the object is as it was stored: with its version, and without what storage does not know."""
    stored, future = api.state.put(key, api.to_storage(served, wanted.obj))
    if wanted.canonical:
        api.uncanonical.pop(key, None)
    else:
        api.uncanonical[key] = stored.version
    await asyncio.shield(future)
    if served.from_storage is not None:
        whole = served.whole_object(stored.data)
        wanted.obj.clear()
        wanted.obj.update(whole)


async def remove(api: Api, key: Key, last: Json) -> int:
    """The version of the deletion. `last` is what watchers see go."""
    gone, future = api.state.delete(key, last)
    api.uncanonical.pop(key, None)
    await asyncio.shield(future)
    return gone.version


def invalid(served: Type, obj: Json, name: str, faults: Iterable[FieldError]) -> StatusError:
    """422 in the words of the kind."""
    if served.custom:
        group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    else:
        group = served.group if served.strategy.error_group is None else served.strategy.error_group
    return errors.invalid(group, obj.get("kind", served.kind), name, faults)
