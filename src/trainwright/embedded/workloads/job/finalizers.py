"""Puts the tracking finalizer on pods and takes it off: patches that other writers of the pod do not disturb."""

from __future__ import annotations

import msgspec

from trainwright.api.resources import PODS
from trainwright.client import Client, Conflict, NotFound
from trainwright.client.requests import STRATEGIC_MERGE_PATCH
from trainwright.embedded.workloads.job.accounting import FINALIZER
from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json


async def release(client: Client, pod: ApiObject) -> None:
    """Takes the finalizer off. A pod that is gone, or another one under its name, has none."""
    await _patch(client, pod, {"$deleteFromPrimitiveList/finalizers": [FINALIZER]})


async def track(client: Client, pod: ApiObject) -> None:
    await _patch(client, pod, {"finalizers": [FINALIZER]})


async def _patch(client: Client, pod: ApiObject, change: Json) -> None:
    body = {"metadata": {"uid": pod.metadata.uid, **change}}
    try:
        await client.patch(
            PODS,
            body,
            name=pod.name,
            namespace=pod.metadata.namespace,
            content_type=STRATEGIC_MERGE_PATCH,
            decode=msgspec.Raw,
        )
    except (NotFound, Conflict):
        return
