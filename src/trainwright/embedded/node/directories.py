"""The pods that this machine runs or ran: a directory for each, found again after every restart of the node.

In: pods to start, to end, to forget. Out: supervisors started, observed, signalled, and a callback when a supervisor's
record changes or its process dies. Nothing here talks to the API server. Files are read and written and processes
started in threads of the node's own, because the node shares its event loop with the API server.
Invariant: a directory is removed only when nothing of its pod runs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from trainwright.embedded.node import identity
from trainwright.embedded.node.record import PodDirectory, PodRecord, PodToRun, supervisor_of

P = ParamSpec("P")
T = TypeVar("T")

MARKER = "TRAINWRIGHT_POD"
"""In every container's environment, with the pod's UID. Without PID namespaces it finds processes that outlived their
keeper."""

THREADS = 4
_PACKAGE_ROOT = Path(__file__).parents[3]


class StartFailed(Exception):
    """A supervisor could not be started; the message says why."""


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

    Closing waits for what its threads have begun: a supervisor that is being started has made its claim by then.
    """

    def __init__(self, path: Path, changed: Callable[[str], None]) -> None:
        self.path = path / "pods"
        self.notify = path / "changes"
        self._changed = changed
        self._pipe: int | None = None
        self._watched: dict[str, int] = {}
        self._threads: ThreadPoolExecutor | None = None

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

    async def start(self, directory: PodDirectory, pod: PodToRun) -> None:
        """Starts the pod's supervisor. Returns when the supervisor has its first record on disk."""
        await self.in_thread(_start, directory, pod)

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
                await self.in_thread(sweep, directory.uid)
            return True
        assert seen.record is not None
        if seen.grace_period is None or grace_period < seen.grace_period:
            await self.in_thread(_ask_to_terminate, directory, seen.record, grace_period)
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
            shutil.rmtree(child)
        else:
            found.append((directory, pod))
    return found


def _start(directory: PodDirectory, pod: PodToRun) -> None:
    directory.work.mkdir(parents=True, exist_ok=True)
    directory.write_pod(pod)
    command = [
        sys.executable,
        "-S",  # the standard library is all it needs; reading site-packages costs more than the rest
        "-m",
        "trainwright.embedded.node.supervisor",
        str(directory.path),
    ]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(_PACKAGE_ROOT)}
    with (directory.path / "supervisor.log").open("ab") as log:
        try:
            # The process that is started forks the supervisor, and ends when that has its first record on disk.
            code = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                check=False,
            ).returncode
        except OSError as error:
            raise StartFailed(f"the pod's supervisor could not be started: {error}") from error
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


def sweep(uid: str) -> None:
    """Kills processes that carry the pod's mark though their supervisor is gone.

    With PID namespaces there are none. Without, a supervisor killed together with its keepers may leave some.
    """
    if not os.path.isdir("/proc/self"):
        return
    mark = f"{MARKER}={uid}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        found = identity.of(int(name))
        try:
            marked = mark in Path("/proc", name, "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if marked and found is not None:
            identity.send_signal(found, signal.SIGKILL)
