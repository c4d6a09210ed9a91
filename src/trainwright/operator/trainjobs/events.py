"""Events: what the operator tells a user besides the status.

The same sentence about the same object is written again only after five minutes, with the number of times it came up:
a job that waits for days must not fill the store. Failing to write an event is logged and never fails a reconcile.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict

import msgspec

from trainwright.api.events import EventType, cut, event_body
from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.api.times import rfc3339
from trainwright.client import AlreadyExists, Client, ClientError

log = logging.getLogger(__name__)

REPEAT_SECONDS = 300.0
REMEMBERED = 4096


class _Told(msgspec.Struct):
    first: str
    count: int
    written_at: float


class Events:
    """Writes events about objects, as `component`."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._told: OrderedDict[str, _Told] = OrderedDict()

    async def tell(
        self, resource: Resource, metadata: ObjectMeta, reason: str, message: str, *, type: EventType = "Warning"
    ) -> None:
        now = self._client.server_time.now()
        key = hashlib.sha256(f"{metadata.uid}/{type}/{reason}/{cut(message)}".encode()).hexdigest()[:16]
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = _Told(rfc3339(now), 0, float("-inf"))
            while len(self._told) > REMEMBERED:
                self._told.popitem(last=False)
        told.count += 1
        if now - told.written_at < REPEAT_SECONDS:
            return
        told.written_at = now
        body = event_body(
            resource,
            metadata,
            suffix=key if told.count == 1 else f"{key}.{int(now):x}",
            type=type,
            reason=reason,
            message=message,
            component=self._component,
            first=told.first,
            last=rfc3339(now),
            count=told.count,
            action="Reconciling",
        )
        try:
            await self._client.create(EVENTS, body, body["metadata"]["namespace"], decode=bytes)
        except AlreadyExists:
            pass  # written before a restart, or by another replica
        except ClientError as error:
            log.debug("an event about %s %s was not written: %s", resource.kind, metadata.name, error)
