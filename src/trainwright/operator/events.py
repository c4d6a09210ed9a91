"""Events: what the operator tells a user besides the status (D17).

Written as core/v1 with both timestamps, since the Kubeflow SDK drops events without a first one. The same sentence
about the same object is told again only after five minutes, with how often it has been so: a job that waits for days
must not fill the store. An event that cannot be written is not worth failing for: it is logged and forgotten.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.api.times import rfc3339
from trainwright.client import AlreadyExists, Client, ClientError

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
REPEAT_SECONDS = 300.0
REMEMBERED = 4096
LONGEST_MESSAGE = 1024


class _Told(msgspec.Struct):
    first: str
    count: int
    written_at: float


class Events:
    """Tells about objects, as `component`."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._told: OrderedDict[str, _Told] = OrderedDict()

    async def tell(
        self, resource: Resource, metadata: ObjectMeta, reason: str, message: str, *, kind: str = WARNING
    ) -> None:
        if len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 4] + " ..."
        now = self._client.server_time.now()
        key = hashlib.sha256(f"{metadata.uid}/{kind}/{reason}/{message}".encode()).hexdigest()[:16]
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = _Told(rfc3339(now), 0, float("-inf"))
            while len(self._told) > REMEMBERED:
                self._told.popitem(last=False)
        told.count += 1
        if now - told.written_at < REPEAT_SECONDS:
            return
        first_time = told.count == 1
        told.written_at = now
        name = f"{metadata.name[:200]}.{key}" if first_time else f"{metadata.name[:200]}.{key}.{int(now):x}"
        try:
            await self._create(
                resource, metadata, name, told, {"reason": reason, "message": message, "type": kind}, now
            )
        except AlreadyExists:
            pass  # told before a restart, or by another replica
        except ClientError as error:
            log.debug("an event about %s %s was not written: %s", resource.kind, metadata.name, error)

    async def _create(
        self, resource: Resource, about: ObjectMeta, name: str, told: _Told, what: dict[str, str], now: float
    ) -> None:
        namespace = about.namespace or "default"
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            **what,
            "action": "Reconciling",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
            "firstTimestamp": told.first,
            "lastTimestamp": rfc3339(now),
            "count": told.count,
        }
        await self._client.create(EVENTS, body, namespace, decode=bytes)
