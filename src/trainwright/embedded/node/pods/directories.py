"""The pods that this machine runs or ran: a directory for each, found again after every restart of the node.

In: pods to start, to end, to forget. Out: supervisors started, observed, signalled, and a callback when a supervisor's
record changes or its process dies. Nothing here talks to the API server. Files are read and written and processes
started in threads of the node's own, because the node shares its event loop with the API server.
Invariant: a directory is removed only when nothing of its pod runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from trainwright.embedded.node.pods import identity
from trainwright.embedded.node.pods.record import PodDirectory, PodRecord, PodToRun, supervisor_of
from trainwright.embedded.node.pods.spawning import NurseryDied, Spawner, StartFailed
from trainwright.embedded.node.resources.usage import Keeper, Owner
from trainwright.embedded.node.supervision import keeper

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

MARKER = "TRAINWRIGHT_POD"
"""In every container's environment, with the pod's UID. Without PID namespaces it finds processes that outlived their
keeper."""

THREADS = 4

HUNG_SECONDS = 10.0
"""How long after the grace period a supervisor may still live: it needs a few seconds for hooks and sidecars."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A pod's directory at one moment.

    `claimed`: the pod was started, and never is again. `alive`: its supervisor lives. `grace_period`: the one that its
    supervisor was asked to end it with.
    """

    claimed: bool
    record: PodRecord | None
    alive: bool
    grace_period: float | None

    @property
    def is_lost(self) -> bool:
        """Whether the supervisor died without recording the pod's end."""
        return not self.alive and (self.record is None or not self.record["done"])


class PodDirectories:
    """`async with` it: while open, `changed(uid)` is called whenever a pod's record changes or its supervisor dies.

    Closing waits for what has been begun: a supervisor that is being started has made its claim by then.
    """

    def __init__(self, path: Path, changed: Callable[[str], None]) -> None:
        self.path = path / "pods"
        self.notify = path / "changes"
        self._changed = changed
        self._pipe: int | None = None
        self._watched: dict[str, int] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._spawner = Spawner(self.path)

    async def __aenter__(self) -> PodDirectories:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.notify.exists():
            os.mkfifo(self.notify, 0o600)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="node")
        # Read and write, so that the pipe never ends when the last supervisor closes its end.
        self._pipe = os.open(self.notify, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._pipe, self._read_changes)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._threads is not None
        assert self._pipe is not None
        await self._spawner.close()
        await asyncio.to_thread(self._threads.shutdown)
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)
        for uid in list(self._watched):
            self._unwatch(uid)

    async def in_thread(self, function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Calls a function that reads or writes files in one of the node's threads."""
        call = partial(function, *args, **keywords)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _read_changes(self) -> None:
        assert self._pipe is not None
        for uid in set(os.read(self._pipe, 65536).decode(errors="replace").split()):
            self._changed(uid)

    def of(self, uid: str) -> PodDirectory:
        return PodDirectory(self.path / uid)

    async def all(self) -> list[tuple[PodDirectory, PodToRun]]:
        """Every pod that has a directory. One without `pod.json` was never started and is removed."""
        return await self.in_thread(_all, self.path)

    def keepers(self) -> dict[Owner, Keeper]:
        """The keepers of all containers that run, by the pod's UID and the container's name. Reads files."""
        found = {}
        for directory, pod in _all(self.path):
            record = directory.record()
            if record is None or record["done"] or not identity.is_alive(supervisor_of(record)):
                continue
            for name, container in (record["initContainers"] | record["containers"]).items():
                if keeper := container.get("keeper"):
                    found[directory.uid, name] = Keeper(keeper, 1 + pod["isolation"]["pid"])
        return found

    async def start(self, directory: PodDirectory, pod: PodToRun) -> None:
        """Starts the pod's supervisor. Returns when the supervisor has its first record on disk."""
        await self.in_thread(_write, directory, pod)
        try:
            code = await self._spawner.start(directory.path)
        except NurseryDied:  # once more: of two supervisors only one gets the claim
            code = await self._spawner.start(directory.path)
        await self.in_thread(_check_started, directory, code)

    def get_ready_to_start(self) -> None:
        """Makes the first start as fast as the others."""
        self._spawner.open()

    async def observe(self, directory: PodDirectory) -> Observation:
        """The pod's state now. While its supervisor lives, `changed` is called when it dies."""
        seen = await self.in_thread(_observe, directory)
        if seen.alive and seen.record is not None and directory.uid not in self._watched:
            self._watch(directory.uid, supervisor_of(seen.record).pid)
            seen = await self.in_thread(_observe, directory)  # it may have died before it was watched
        return seen

    def _watch(self, uid: str, pid: int) -> None:
        if uid in self._watched or not hasattr(os, "pidfd_open"):
            return
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self._watched[uid] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._died, uid)

    def _died(self, uid: str) -> None:
        self._unwatch(uid)
        self._changed(uid)

    def _unwatch(self, uid: str) -> None:
        descriptor = self._watched.pop(uid, None)
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)

    async def terminate(self, directory: PodDirectory, grace_period: float) -> bool:
        """Asks the pod to end within the grace period. True when nothing of it runs (any more)."""
        seen = await self.observe(directory)
        if not seen.alive:
            if seen.is_lost:
                return await self.in_thread(sweep, directory.uid)
            return True
        assert seen.record is not None
        if seen.grace_period is None or grace_period < seen.grace_period:
            await self.in_thread(_ask_to_terminate, directory, seen.record, grace_period)
        elif await self.in_thread(_is_overdue, directory, seen.grace_period):
            await self.in_thread(_kill, directory, seen.record)
        return False

    async def remove(self, directory: PodDirectory) -> None:
        """Removes the directory of a pod of which nothing runs."""
        self._unwatch(directory.uid)
        await self.in_thread(shutil.rmtree, directory.path, ignore_errors=True)


def _all(path: Path) -> list[tuple[PodDirectory, PodToRun]]:
    found = []
    for child in sorted(child for child in path.iterdir() if child.is_dir()):
        directory = PodDirectory(child)
        pod = directory.pod()
        if pod is None:
            if not _observe(directory).alive:  # one that lives is found by its uid, when the API names it
                shutil.rmtree(child, ignore_errors=True)
        else:
            found.append((directory, pod))
    return found


def _write(directory: PodDirectory, pod: PodToRun) -> None:
    directory.work.mkdir(parents=True, exist_ok=True)
    directory.write_pod(pod)


def _check_started(directory: PodDirectory, code: int) -> None:
    if code != 0 or directory.record() is None:
        said = (directory.path / "supervisor.log").read_text(errors="replace").strip().splitlines()
        raise StartFailed(f"the pod's supervisor ended with code {code}: {said[-1] if said else 'no message'}")


def _observe(directory: PodDirectory) -> Observation:
    record = directory.record()
    alive = record is not None and not record["done"] and identity.is_alive(supervisor_of(record))
    if not alive:
        record = directory.record()  # it may have recorded the pod's end just before it exited
    return Observation(directory.is_claimed(), record, alive, directory.grace_period())


def _ask_to_terminate(directory: PodDirectory, record: PodRecord, grace_period: float) -> None:
    directory.ask_to_terminate(grace_period)
    identity.send_signal(supervisor_of(record), signal.SIGTERM)


def _is_overdue(directory: PodDirectory, grace_period: float) -> bool:
    """Whether a supervisor that was asked to end its pod has let all of its time pass."""
    asked = directory.asked_to_terminate_at()
    return asked is not None and time.time() > asked + grace_period + HUNG_SECONDS


def _kill(directory: PodDirectory, record: PodRecord) -> None:
    """Kills a supervisor that hangs, and every process below it, each by its identity."""
    supervisor = supervisor_of(record)
    below = [found for pid in keeper.descendants(supervisor.pid) if (found := identity.of(pid)) is not None]
    if identity.send_signal(supervisor, signal.SIGKILL):
        log.warning("pod %s: its supervisor hung and was killed", directory.uid)
        for process in below:
            identity.send_signal(process, signal.SIGKILL)


def sweep(uid: str) -> bool:
    """Kills processes that carry the pod's mark though their supervisor is gone. True when there are none.

    With PID namespaces there are none. Without, a supervisor killed together with its keepers may leave some.
    """
    if not os.path.isdir("/proc/self"):
        return True
    for pause in (0.01, 0.05, 0.2, 0.0):
        marked = _marked(uid)
        for process in marked:
            identity.send_signal(process, signal.SIGKILL)
        if not marked:
            return True
        time.sleep(pause)
    return False  # one that even SIGKILL does not end waits for a device, for example


def _marked(uid: str) -> list[identity.ProcessIdentity]:
    mark, marked = f"{MARKER}={uid}".encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        found = identity.of(int(name))
        try:
            if found is not None and mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                marked.append(found)
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return marked
