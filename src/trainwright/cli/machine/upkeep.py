"""What the local control plane does now and then: it says when the disk gets full, and keeps its own log small."""

from __future__ import annotations

import asyncio
import logging

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import NODES
from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.clusters.diskspace import pressure
from trainwright.client import Client, ClientError
from trainwright.clock import SystemClock
from trainwright.embedded.events import EventRecorder

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
NODE = "local"


async def keep_up(cluster: ClusterDirectory, client: Client) -> None:
    """Until cancelled."""
    recorder = EventRecorder(client, "trainwright", SystemClock())
    said = ""
    while True:
        cluster.rotate_log()
        reason = pressure(cluster.path)
        if reason:
            await _tell(client, recorder, reason)
        if bool(reason) != bool(said):
            log.warning("%s", reason or f"the disk of {cluster.path} has room again")
        said = reason
        await asyncio.sleep(EVERY_SECONDS)


async def _tell(client: Client, recorder: EventRecorder, reason: str) -> None:
    try:
        node = await client.get(NODES, NODE)
    except ClientError:
        return  # next time
    about = ObjectMeta(name=NODE, uid=node["metadata"]["uid"])
    await recorder.record(NODES, about, "Warning", "DiskPressure", reason)
