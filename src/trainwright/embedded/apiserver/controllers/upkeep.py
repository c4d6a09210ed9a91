"""What happens now and then: history is compacted, old events go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.embedded.apiserver.access.users import SYSTEM
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http import age
from trainwright.embedded.apiserver.operations import deletion
from trainwright.embedded.apiserver.operations.deletion import DeleteOptions, Deletion
from trainwright.embedded.apiserver.storage.table import Event
from trainwright.schema.jsonobject import Json

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

EVERY_SECONDS = 20.0
EVENT_SECONDS = 3600.0


class Upkeep:
    name = "upkeep"

    def __init__(self, api: Api) -> None:
        self.api = api

    def observe(self, event: Event) -> None: ...

    def resync(self) -> None: ...

    async def run(self) -> None:
        while True:
            await self.api.clock.sleep(EVERY_SECONDS)
            self.api.state.compact()
            await expire_events(self.api)


def last_written(obj: Json) -> float | None:
    """When an event was last written: the newest time it carries."""
    times = [obj["metadata"].get("creationTimestamp"), obj.get("lastTimestamp"), obj.get("eventTime")]
    times.append((obj.get("series") or {}).get("lastObservedTime"))
    times += [entry.get("time") for entry in obj["metadata"].get("managedFields") or ()]
    found = [moment.timestamp() for moment in map(age.parse, times) if moment is not None]
    return max(found, default=None)


async def expire_events(api: Api) -> None:
    """Events live an hour after their last write, as in Kubernetes."""
    served = api.registry.find("", "v1", "events")
    assert served is not None
    for stored in list(api.state.table("events").objects.values()):
        written = last_written(stored.decode())
        if written is None or written + EVENT_SECONDS > api.clock.wall():
            continue
        try:
            await deletion.delete(api, Deletion(served, stored.key, SYSTEM, DeleteOptions(uid=stored.uid)))
        except StatusError as error:
            if error.code not in (404, 409):
                raise
