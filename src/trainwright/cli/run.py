"""`trainwright run`: runs one TrainJob from a file to its end, on this machine.

A run: read the documents; use the cluster that is up or start one for the run; check that the runtime exists; create
the file's objects; follow the job phase by phase with the ranks' output in between; say how it ended and how long each
part took. Ctrl-C deletes the job and waits until its processes have ended.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainwright.api.resources import TRAIN_JOBS
from trainwright.cli.connection import carry_out, connected
from trainwright.cli.delete import delete_job
from trainwright.cli.directory import ClusterDirectory
from trainwright.cli.failure import Failure
from trainwright.cli.lines import LogLines
from trainwright.cli.progress import ProgressLines
from trainwright.cli.sentences import (
    Phase,
    condition,
    failed_containers,
    label_of,
)
from trainwright.cli.submission import Submission, read_submission
from trainwright.cli.terminal import Terminal
from trainwright.cli.up import start, stop
from trainwright.cli.view import JobView
from trainwright.client.client import Client
from trainwright.client.errors import NotFound
from trainwright.schema.jsonobject import Json

DRAIN_SECONDS = 5.0
INTERRUPTED = 130


def run(file: str, directory: Path, namespace: str) -> int:
    submission = read_submission(file, namespace)
    cluster, terminal, watch = ClusterDirectory(directory), Terminal(), Stopwatch()
    with _cluster_for_the_run(cluster, terminal, watch):
        code = carry_out(_Run(cluster, submission, terminal, watch).go())
    terminal.say(f"took {watch}")
    return code


@contextmanager
def _cluster_for_the_run(cluster: ClusterDirectory, terminal: Terminal, watch: Stopwatch) -> Iterator[None]:
    """Uses the cluster that is up, or starts one and stops it at the end."""
    if cluster.running_pid() is not None:
        yield
        return
    terminal.say("starting a local cluster for this run")
    pid = start(cluster)
    watch.lap("control plane")
    try:
        yield
    finally:
        if cluster.running_pid() == pid:
            stop(cluster)
            watch.lap("shutting down")


class Stopwatch:
    """Measures how long each part took."""

    def __init__(self) -> None:
        self._begin = self._lap = time.monotonic()
        self._parts: list[tuple[str, float]] = []

    def lap(self, part: str) -> None:
        now = time.monotonic()
        self._parts.append((part, now - self._lap))
        self._lap = now

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in self._parts)
        return f"{self._lap - self._begin:.1f} s: {parts}"


class _Run:
    """The run of one TrainJob."""

    def __init__(self, cluster: ClusterDirectory, submission: Submission, terminal: Terminal, watch: Stopwatch) -> None:
        self._cluster = cluster
        self._submission = submission
        self._terminal = terminal
        self._watch = watch
        self._name = submission.name
        self._namespace = submission.namespace
        self._interrupts = 0
        self._view = JobView(cluster, submission.namespace, submission.name)

    async def go(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt)
        async with connected(self._cluster, self._terminal.warn) as client:
            await self._submission.check_runtime(client)
            await self._make_way(client)
            await self._submission.create(client)
        self._terminal.phase(self._name, "Created", f"in namespace {self._namespace}")
        try:
            return await self._follow()
        except asyncio.CancelledError:
            if self._interrupts < 2:
                raise
            self._terminal.say(f"left as it is; delete it with: trainwright delete {self._name}{self._cluster.flag()}")
            return INTERRUPTED

    def _interrupt(self) -> None:
        self._interrupts += 1
        self._view.announce()
        if self._interrupts == 2:  # the second time, do not wait for the clean-up
            for task in asyncio.all_tasks():
                task.cancel()

    async def _make_way(self, client: Client) -> None:
        """Deletes a finished job of the same name. Fails if one is still running."""
        try:
            old = await client.get(TRAIN_JOBS, self._name, self._namespace)
        except NotFound:
            return
        if not (condition(old, "Complete") or condition(old, "Failed")):
            raise Failure(
                f"TrainJob {self._name} is still running; follow it with: trainwright logs -f {self._name}"
                f"{self._cluster.flag()}, or delete it with: trainwright delete {self._name}{self._cluster.flag()}"
            )
        self._terminal.say(f"this replaces TrainJob {self._name}, which has ended")
        await delete_job(self._cluster, client, self._name, self._namespace)

    async def _follow(self) -> int:
        lines = LogLines(self._cluster, self._namespace, self._terminal)
        async with self._view as view:
            async with lines:
                phase = await self._phases(view, lines)
                if phase is None:
                    return await self._clean_up()
                await lines.drain(DRAIN_SECONDS)
            self._watch.lap("training")
            self._terminal.phase(self._name, phase.name, phase.sentence)
            if phase.name == "Complete":
                return 0
            self._show_failures(view.pods, lines)
            return 1

    async def _phases(self, view: JobView, lines: LogLines) -> Phase | None:
        """Shows phases and progress. Returns the last phase, or None when the user interrupted."""
        shown: Phase | None = None
        progress = ProgressLines()
        lost = started = False
        while not self._interrupts:
            await self._news(view, progress.wait(view.job, time.monotonic()) if view.job else None)
            if view.connected is lost and shown:
                lost = not view.connected
                self._terminal.say(self._away() if lost else "the control plane is back")
            phase = view.phase
            if phase is None:
                if shown and view.connected:
                    raise Failure(f"TrainJob {self._name} has been deleted by somebody else")
                continue
            lines.follow(view.pods)
            if phase.name == "Running" and not started:
                self._watch.lap("starting pods")
                started = True
            if phase != shown and not phase.is_final:
                self._terminal.phase(self._name, *phase)
                shown = phase
            if view.job and (line := progress.line(view.job, time.monotonic(), last=phase.is_final)):
                self._terminal.phase(self._name, "Progress", line)
            if phase.is_final:
                return phase
        return None

    def _away(self) -> str:
        return (
            f"the control plane does not answer; training continues. Start it with: trainwright up --detach"
            f"{self._cluster.flag()}"
        )

    async def _news(self, view: JobView, seconds: float | None) -> None:
        """Returns when there may be something new to show: the view changed, or the seconds have passed."""
        try:
            async with asyncio.timeout(seconds):
                await view.changed()
        except TimeoutError:
            pass

    async def _clean_up(self) -> int:
        self._watch.lap("training")
        self._terminal.say(
            f"stopping: deleting TrainJob {self._name} and waiting for its processes to end (Ctrl-C again: leave)"
        )
        async with connected(self._cluster) as client:
            await delete_job(self._cluster, client, self._name, self._namespace)
        self._terminal.say(f"TrainJob {self._name} deleted; nothing of it is left")
        return INTERRUPTED

    def _show_failures(self, pods: list[Json], lines: LogLines) -> None:
        for pod, container, how in failed_containers(pods)[:3]:
            tail = lines.tails.get((pod["metadata"]["name"], container), ())
            self._terminal.say(
                f"\n{label_of(pod)} (pod {pod['metadata']['name']}, container {container}) {how}; its last lines:"
            )
            for line in tail:
                self._terminal.say(f"    {line}")
