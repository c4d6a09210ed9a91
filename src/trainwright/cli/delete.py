"""`trainwright delete`: deletes a TrainJob and returns when its JobSet and pods are deleted too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from trainwright.api.resources import TRAIN_JOBS
from trainwright.cli.connection import carry_out, connected
from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.cli.view import JobView
from trainwright.client.client import Client
from trainwright.client.errors import NotFound

GONE_SECONDS = 60.0


def delete(name: str, directory: Path, namespace: str) -> int:
    cluster = ClusterDirectory(directory)

    async def work() -> None:
        async with connected(cluster) as client:
            try:
                await delete_job(cluster, client, name, namespace)
            except NotFound:
                raise Failure(f'there is no TrainJob named "{name}" in namespace {namespace}') from None

    carry_out(work())
    print(f"TrainJob {name} deleted; nothing of it is left")
    return 0


async def delete_job(cluster: ClusterDirectory, client: Client, name: str, namespace: str) -> None:
    """Deletes the job; garbage collection deletes its JobSet and pods. Returns when they are deleted."""
    await client.delete(TRAIN_JOBS, name, namespace)
    async with JobView(cluster, namespace, name) as view:
        try:
            async with asyncio.timeout(GONE_SECONDS):
                while not view.is_empty:
                    await view.changed()
        except TimeoutError:
            left = [pod["metadata"]["name"] for pod in view.pods]
            raise Failure(
                f"TrainJob {name} is deleted, but these pods still run: {', '.join(left) or 'none'}"
            ) from None
