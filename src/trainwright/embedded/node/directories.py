"""The pods that this machine runs or ran: a directory for each, found again after every restart of the node.

In: pods to start, to end, to forget. Out: supervisors started, asked, signalled, and a callback when one's record
changes or its process dies. Nothing here speaks to the API server. Invariant: a directory is removed only when nothing
of its pod runs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from trainwright.embedded.node import identity
from trainwright.embedded.node.record import PodDirectory, PodToRun, supervisor_of

MARKER = "TRAINWRIGHT_POD"
"""In every container's environment, with the pod's UID: by it, what outlived its keeper is found where there are no PID
namespaces."""

_PACKAGE_ROOT = Path(__file__).parents[3]


class StartFailed(Exception):
    """A supervisor could not be started; the message says why."""


class PodDirectories:
    """`async with` it: while open, `changed(uid)` is called whenever a pod has news."""

    def __init__(self, path: Path, changed: Callable[[str], None]) -> None:
        self.path = path / "pods"
        self.notify = path / "changes"
        self._changed = changed
        self._pipe: int | None = None
        self._watched: dict[str, int] = {}

    async def __aenter__(self) -> PodDirectories:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.notify.exists():
            os.mkfifo(self.notify, 0o600)
        # Read and write, so that the pipe never ends when the last supervisor closes its end.
        self._pipe = os.open(self.notify, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._pipe, self._read_changes)
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        assert self._pipe is not None
        loop.remove_reader(self._pipe)
        os.close(self._pipe)
        for uid in list(self._watched):
            self._unwatch(uid)

    def _read_changes(self) -> None:
        assert self._pipe is not None
        for uid in set(os.read(self._pipe, 65536).decode(errors="replace").split()):
            self._changed(uid)

    def of(self, uid: str) -> PodDirectory:
        return PodDirectory(self.path / uid)

    def all(self) -> list[tuple[PodDirectory, PodToRun]]:
        """Every pod there is a directory for. One without `pod.json` was never started and is removed."""
        found = []
        for path in sorted(path for path in self.path.iterdir() if path.is_dir()):
            directory = PodDirectory(path)
            pod = directory.pod()
            if pod is None:
                shutil.rmtree(path)
            else:
                found.append((directory, pod))
        return found

    async def start(self, directory: PodDirectory, pod: PodToRun) -> None:
        """Starts the pod's supervisor. Returns when the supervisor has its first record on disk."""
        directory.work.mkdir(parents=True, exist_ok=True)
        directory.write_pod(pod)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(_PACKAGE_ROOT)}
        with (directory.path / "supervisor.log").open("ab") as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-S",  # the standard library is all it needs; reading site-packages costs more than the rest
                    "-m",
                    "trainwright.embedded.node.supervisor",
                    str(directory.path),
                    env=environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd="/",
                )
            except OSError as error:
                raise StartFailed(f"the pod's supervisor could not be started: {error}") from error
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                # It cannot be called back. Whoever ends the pods next must find its claim, so that is waited for.
                await process.wait()
                raise
        if code != 0 or directory.record() is None:
            said = (directory.path / "supervisor.log").read_text(errors="replace").strip().splitlines()
            raise StartFailed(f"the pod's supervisor ended with code {code}: {said[-1] if said else 'no word'}")

    def is_supervised(self, directory: PodDirectory) -> bool:
        """Whether the pod's supervisor lives; its end will be told by `changed`."""
        record = directory.record()
        if record is None or record["done"]:
            return False
        supervisor = supervisor_of(record)
        if not identity.is_alive(supervisor):
            return False
        self._watch(directory.uid, supervisor.pid)
        return identity.is_alive(supervisor)

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

    def terminate(self, directory: PodDirectory, grace_period: float) -> bool:
        """Asks the pod to end within the grace period. True when nothing of it runs (any more)."""
        if not self.is_supervised(directory):
            record = directory.record()
            if record is None or not record["done"]:
                sweep(directory.uid)
            return True
        asked = directory.grace_period()
        if asked is None or grace_period < asked:
            directory.ask_to_terminate(grace_period)
            record = directory.record()
            assert record is not None
            identity.send_signal(supervisor_of(record), signal.SIGTERM)
        return False

    def remove(self, directory: PodDirectory) -> None:
        """Forgets a pod of which nothing runs."""
        self._unwatch(directory.uid)
        shutil.rmtree(directory.path, ignore_errors=True)


def sweep(uid: str) -> None:
    """Kills processes that bear the pod's mark though their supervisor is gone.

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
