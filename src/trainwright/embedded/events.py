"""Events as the local cluster's parts write them: core/v1, with both timestamps, so that every client shows them.

In: an object, a reason and a sentence. Out: one `create`. An event that cannot be written is no reason to fail what it
tells of.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any, Literal

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.api.times import rfc3339
from trainwright.client import Client, ClientError
from trainwright.controlloop import Clock

log = logging.getLogger(__name__)

MAX_MESSAGE = 1024
"""What the API server takes at most."""


class EventRecorder:
    """Writes events in the name of one component."""

    def __init__(self, client: Client, component: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._clock = clock

    async def record(
        self, resource: Resource, about: ObjectMeta, type: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        now = rfc3339(self._clock.wall())
        namespace = about.namespace or "default"
        event: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": type,
            "reason": reason,
            "message": message[:MAX_MESSAGE],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._client.create(EVENTS, event, namespace, decode=msgspec.Raw)
        except ClientError as error:
            log.debug("event %s about %s/%s not written: %s", reason, namespace, about.name, error)
