"""The directory of a local cluster, with all of its state.

    kubeconfig          how to reach it, CA and token inline (0600)
    pid                 the control plane's process
    control-plane.lock  locked by the control plane; the kernel unlocks it when the process dies
    control-plane.log   what a detached control plane printed
    trainwright-cluster that this directory is ours: no other that has files in it is taken
    …                   the API server's store and the pods' directories

The lock tells whether a control plane is alive, not the pid: a pid can be stale or belong to another process.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainwright.cli.failure import Failure

OF_A_CLUSTER = ("state.db", "control-plane.lock", "control-plane.log")
"""What directories of clusters have that were made before there was a marker."""

LARGEST_LOG = 16 * 2**20


def default_directory() -> Path:
    """`trainwright` in the user's XDG state directory."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "trainwright"


def check_system() -> None:
    """Fails where no local cluster can run."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        raise Failure(
            "a local cluster, and training on this machine, need Linux; on this system Trainwright acts on other"
            " clusters: give --context or --kubeconfig"
        ) from None


class ClusterDirectory:
    """The files of one local cluster, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.kubeconfig = self.path / "kubeconfig"
        self.pid_file = self.path / "pid"
        self.lock_file = self.path / "control-plane.lock"
        self.log_file = self.path / "control-plane.log"
        self.marker = self.path / "trainwright-cluster"

    def create(self) -> None:
        """Makes the directory, readable only by its owner. One that exists must be the user's, and empty or a
        cluster's: nobody's home directory is locked up, and nobody else's files are followed.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_owner()
            if not self._is_ours():
                raise Failure(
                    f"{self.path} has files in it and is no cluster's directory; choose another with --dir, or an"
                    " empty one"
                )
            self.path.chmod(0o700)
            self.marker.touch(mode=0o600)
        except OSError as error:
            if self.marker.exists() and error.errno in (errno.ENOSPC, errno.EDQUOT):
                return
            raise Failure(
                f"cannot use {self.path} for the cluster's state: {error.strerror}; choose another with --dir"
            ) from error

    def _check_owner(self) -> None:
        mine = os.getuid() if hasattr(os, "getuid") else None
        for found in (self.path.lstat(), self.path.stat()):
            if mine is not None and found.st_uid not in ((mine, 0) if stat.S_ISLNK(found.st_mode) else (mine,)):
                raise Failure(f"{self.path} belongs to another user; choose another with --dir")

    def _is_ours(self) -> bool:
        if self.marker.exists():
            return True
        names = {entry.name for entry in self.path.iterdir()}
        return names <= {"runs"} or not names.isdisjoint(OF_A_CLUSTER)

    def running_pid(self) -> int | None:
        """The control plane's pid, 0 while it starts or ends, or None when nothing holds the lock."""
        try:
            import fcntl
        except ImportError:
            return None  # a system on which no local cluster can run
        try:
            handle = os.open(self.lock_file, os.O_RDWR)
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
        import fcntl  # `check_system` comes first

        handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
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

    def rotate_log(self) -> None:
        """Keeps the log and its predecessor, each of a size. A running control plane appends, so that it may go on."""
        try:
            if self.log_file.stat().st_size <= LARGEST_LOG:
                return
            import shutil  # with every form of compression it knows

            previous = self.log_file.with_name(self.log_file.name + ".1")
            shutil.copyfile(self.log_file, previous)
            previous.chmod(0o600)
            os.truncate(self.log_file, 0)
        except OSError:
            pass  # a log is not worth a failure

    def holds(self, pid: int) -> bool:
        """Whether this very process has the lock file open; True where the system does not tell."""
        descriptors = Path(f"/proc/{pid}/fd")
        if not Path("/proc/self/fd").exists():
            return True
        try:
            return any(os.readlink(found) == str(self.lock_file.resolve()) for found in _entries(descriptors))
        except (FileNotFoundError, ProcessLookupError):
            return False
        except PermissionError:
            return False  # another user's: not ours to signal

    def already_running(self, pid: int | None) -> str:
        return (
            f"a control plane is already running on {self.path}{f' (pid {pid})' if pid else ''}; "
            f"use it with: export KUBECONFIG={self.kubeconfig}, or stop it with: trainwright down{self.flag()}"
        )

    def flag(self) -> str:
        """` --dir …` for a command in a message, or nothing for the default directory."""
        return "" if self.path == default_directory() else f" --dir {shlex.quote(str(self.path))}"

    def _read_pid(self) -> int | None:
        try:
            return int(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None


def _entries(directory: Path) -> Iterator[str]:
    """The paths in a directory of /proc, as far as they stay."""
    for name in os.listdir(directory):
        try:
            os.readlink(directory / name)
        except FileNotFoundError:
            continue
        yield str(directory / name)
