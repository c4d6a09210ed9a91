"""Events as the local cluster's components write them.

In: an object, a reason and a sentence. Out: one `create`; the same again within ten minutes is one `patch` of the
event that is there, which then counts: `count` for readers of core/v1, `series` for those of events.k8s.io. Failing to
write an event never fails the work it is about.
"""

from __future__ import annotations

import logging
import uuid
from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from trainwright.api.events import EventType, event_body
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.api.times import rfc3339, rfc3339_micro
from trainwright.client import AlreadyExists, Client, ClientError
from trainwright.controlloop import Clock

log = logging.getLogger(__name__)

REMEMBERED = 1024
SAME_SECONDS = 600.0


@dataclass(slots=True)
class _Written:
    suffix: str
    count: int
    first: float
    last: float


class EventRecorder:
    """Writes events in the name of one component."""

    def __init__(self, client: Client, component: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._clock = clock
        self._written: OrderedDict[tuple[str, ...], _Written] = OrderedDict()

    async def record(
        self, resource: Resource, about: ObjectMeta, type: EventType, reason: str, message: str, *, action: str = ""
    ) -> None:
        now = self._clock.wall()
        key = (about.uid, type, reason, message)
        written = self._written.get(key)
        if written is None or now - written.last >= SAME_SECONDS:
            written = self._written[key] = _Written(uuid.uuid4().hex[:16], 0, now, now)
            if len(self._written) > REMEMBERED:
                self._written.popitem(last=False)
        written.count, written.last = written.count + 1, now
        first, last = rfc3339(written.first), rfc3339(now)
        await self.count(
            resource,
            about,
            type,
            reason,
            message,
            suffix=written.suffix,
            count=written.count,
            first=first,
            last=last,
            action=action,
        )

    async def count(
        self,
        resource: Resource,
        about: ObjectMeta,
        type: EventType,
        reason: str,
        message: str,
        *,
        suffix: str,
        count: int,
        first: str,
        last: str,
        action: str = "",
    ) -> None:
        """Writes an event that has happened `count` times, or counts up the one of the same `suffix`."""
        event = event_body(
            resource,
            about,
            suffix=suffix,
            type=type,
            reason=reason,
            message=message,
            component=self._component,
            first=first,
            last=last,
            count=count,
            action=action,
        )
        metadata = event["metadata"]
        try:
            try:
                await self._client.create(EVENTS, event, metadata["namespace"], decode=msgspec.Raw)
            except AlreadyExists:
                series = {"count": count, "lastObservedTime": rfc3339_micro(self._clock.wall())}
                body = {"count": count, "lastTimestamp": last, "series": series}
                await self._client.patch(EVENTS, body, name=metadata["name"], namespace=metadata["namespace"])
        except ClientError as error:
            log.debug("event %s about %s/%s not written: %s", reason, metadata["namespace"], about.name, error)
