"""What happens now and then: history is compacted, old events go."""

from __future__ import annotations

import asyncio
import datetime
import time
from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http import age
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.writing import SYSTEM
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

EVERY_SECONDS = 20.0
EVENT_SECONDS = 3600.0


async def upkeep(api: Api) -> None:
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        api.state.compact()
        await expire_events(api, time.time())


def last_written(obj: Json) -> float:
    """When an event was last written: the newest time it carries."""
    times = [obj["metadata"].get("creationTimestamp"), obj.get("lastTimestamp"), obj.get("eventTime")]
    times.append((obj.get("series") or {}).get("lastObservedTime"))
    times += [entry.get("time") for entry in obj["metadata"].get("managedFields") or ()]
    found = [moment.timestamp() for moment in map(age.parse, times) if moment is not None]
    return max(found, default=datetime.datetime.now(datetime.UTC).timestamp())


async def expire_events(api: Api, now: float) -> None:
    """Events live an hour after their last write, as in Kubernetes."""
    served = api.registry.find("", "v1", "events")
    assert served is not None
    for stored in list(api.state.table("events").objects.values()):
        if last_written(stored.decode()) + EVENT_SECONDS > now:
            continue
        try:
            await deletion.delete(api, served, stored.key, deletion.DeleteOptions(uid=stored.uid), SYSTEM)
        except StatusError as error:
            if error.code not in (404, 409):
                raise
