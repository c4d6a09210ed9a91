"""Events as the local cluster's components write them.

In: an object, a reason and a sentence. Out: one `create`. Failing to write an event never fails the work it is about.
"""

from __future__ import annotations

import logging
import uuid

import msgspec

from trainwright.api.events import EventType, event_body
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.api.times import rfc3339
from trainwright.client import Client, ClientError
from trainwright.controlloop import Clock

log = logging.getLogger(__name__)


class EventRecorder:
    """Writes events in the name of one component."""

    def __init__(self, client: Client, component: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._clock = clock

    async def record(self, resource: Resource, about: ObjectMeta, type: EventType, reason: str, message: str) -> None:
        now = rfc3339(self._clock.wall())
        event = event_body(
            resource,
            about,
            suffix=uuid.uuid4().hex[:16],
            type=type,
            reason=reason,
            message=message,
            component=self._component,
            first=now,
            last=now,
        )
        namespace = event["metadata"]["namespace"]
        try:
            await self._client.create(EVENTS, event, namespace, decode=msgspec.Raw)
        except ClientError as error:
            log.debug("event %s about %s/%s not written: %s", reason, namespace, about.name, error)
