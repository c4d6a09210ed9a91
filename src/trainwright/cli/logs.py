"""`trainwright logs`: the output of a TrainJob's ranks, merged."""

from __future__ import annotations

from pathlib import Path

from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.api.wellknown import JOBSET_NAME
from trainwright.cli.connection import carry_out, connected
from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.cli.lines import LogLines
from trainwright.cli.terminal import Terminal
from trainwright.cli.view import JobView
from trainwright.client.errors import NotFound

DRAIN_SECONDS = 5.0


def logs(name: str, follow: bool, directory: Path, namespace: str) -> int:
    carry_out(_logs(ClusterDirectory(directory), name, namespace, follow))
    return 0


async def _logs(cluster: ClusterDirectory, name: str, namespace: str, follow: bool) -> None:
    terminal = Terminal()
    async with connected(cluster) as client:
        try:
            await client.get(TRAIN_JOBS, name, namespace)
        except NotFound:
            raise Failure(f'there is no TrainJob named "{name}" in namespace {namespace}') from None
        pods = (await client.list(PODS, namespace, label_selector=f"{JOBSET_NAME}={name}")).items or []
    if not pods and not follow:
        terminal.say(
            f"TrainJob {name} has no pods, so there are no lines; see why with: trainwright get trainjobs {name}"
        )
        return
    async with LogLines(cluster, namespace, terminal, follow=follow) as lines:
        lines.follow(pods)
        if follow:
            await _until_the_end(JobView(cluster, namespace, name), lines)
        await lines.drain(DRAIN_SECONDS if follow else None)


async def _until_the_end(view: JobView, lines: LogLines) -> None:
    seen = False
    async with view:
        while True:
            await view.changed()
            seen = seen or view.job is not None
            if view.phase is not None:
                lines.follow(view.pods)
                if view.phase.is_final:
                    return
            elif seen and view.connected:
                return
