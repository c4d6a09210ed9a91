"""The directory of a local cluster, with all of its state.

    kubeconfig          how to reach it, CA and token inline (0600)
    pid                 the control plane's process
    control-plane.lock  locked by the control plane; the kernel unlocks it when the process dies
    control-plane.log   what a detached control plane printed
    …                   the API server's store and the pods' directories

The lock tells whether a control plane is alive, not the pid: a pid can be stale or belong to another process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainwright.cli.failure import Failure


def default_directory() -> Path:
    """`trainwright` in the user's XDG state directory."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "trainwright"


class ClusterDirectory:
    """The files of one local cluster, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.kubeconfig = self.path / "kubeconfig"
        self.pid_file = self.path / "pid"
        self.lock_file = self.path / "control-plane.lock"
        self.log_file = self.path / "control-plane.log"

    def create(self) -> None:
        """Makes the directory, readable only by its owner."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as error:
            raise Failure(
                f"cannot use {self.path} for the cluster's state: {error.strerror}; choose another with --dir"
            ) from error

    def running_pid(self) -> int | None:
        """The control plane's pid, 0 while it starts or ends, or None when nothing holds the lock."""
        try:
            handle = os.open(self.lock_file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._read_pid() or 0
        finally:
            os.close(handle)
        return None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Takes the lock and writes the pid, which is removed at the end of the block.

        The lock is held until the process has ended, so that a command that waits for it finds the process gone.
        """
        handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Failure(self.already_running(self._read_pid())) from None
        self.pid_file.write_text(f"{os.getpid()}\n")
        try:
            yield
        finally:
            self.pid_file.unlink(missing_ok=True)

    def already_running(self, pid: int | None) -> str:
        return (
            f"a control plane is already running on {self.path}{f' (pid {pid})' if pid else ''}; "
            f"use it with: export KUBECONFIG={self.kubeconfig}, or stop it with: trainwright down{self.flag()}"
        )

    def flag(self) -> str:
        """` --dir …` for a command in a message, or nothing for the default directory."""
        return "" if self.path == default_directory() else f" --dir {self.path}"

    def _read_pid(self) -> int | None:
        try:
            return int(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None
