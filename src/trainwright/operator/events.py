"""Events: what the operator tells a user besides the status (D17).

Written as core/v1 with both timestamps, since the Kubeflow SDK drops events without a first one. The same sentence
about the same object becomes one event whose count grows, at most once in five minutes, so that a job that waits for
days does not fill the store. An event that cannot be written is not worth failing for: it is logged and forgotten.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from datetime import UTC, datetime

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import EVENTS, Resource
from trainwright.client import AlreadyExists, Client, ClientError, NotFound
from trainwright.pipeline import timestamp

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
REPEAT_SECONDS = 300.0
REMEMBERED = 4096
LONGEST_MESSAGE = 1024


class _Told(msgspec.Struct):
    name: str
    first: str
    count: int
    written_at: float
    written: int


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
        if told is not None:
            told.count += 1
            if now - told.written_at < REPEAT_SECONDS:
                return
        try:
            if told is None:
                await self._create(resource, metadata, reason, message, kind, key, now)
            else:
                await self._count_up(metadata.namespace or "default", told, now)
        except NotFound:
            self._told.pop(key, None)  # events live an hour: next time it is a new one
        except ClientError as error:
            log.debug("an event about %s %s was not written: %s", resource.kind, metadata.name, error)

    async def _create(
        self, resource: Resource, about: ObjectMeta, reason: str, message: str, kind: str, key: str, now: float
    ) -> None:
        stamp = timestamp(datetime.fromtimestamp(now, UTC))
        namespace = about.namespace or "default"
        name = f"{about.name[:200]}.{key}"
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
            "type": kind,
            "reason": reason,
            "message": message,
            "action": "Reconciling",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        self._told[key] = _Told(name, stamp, 1, now, 1)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        try:
            await self._client.create(EVENTS, body, namespace, decode=bytes)
        except AlreadyExists:
            pass  # told before a restart, or by another replica

    async def _count_up(self, namespace: str, told: _Told, now: float) -> None:
        told.written_at, told.written = now, told.count
        patch = {"count": told.count, "lastTimestamp": timestamp(datetime.fromtimestamp(now, UTC))}
        await self._client.patch(EVENTS, patch, name=told.name, namespace=namespace, decode=bytes)
