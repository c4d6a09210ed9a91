"""The stand-ins on a pod's PATH, and a directory for each job in which its pods find each other's sshd.

In: pods that declare a remote shell (`declarations`). Out: `Shell`s, with what has to be in such a pod's environment.
Blocks: call `prepare` and `release` in a thread.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import socket
import struct
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from trainwright.embedded.node.remoteshell import mpi, mpirun, wire

SSHD_PORT = 2222
"""Where the runtimes of the Trainer API have their sshd listen, since an ordinary user may not take port 22."""

_ABSOLUTE = re.compile(r"(?<![\w./-])(?:/usr)?(?:/local)?/s?bin/(sshd?)(?![\w./-])")
_PACKAGE_ROOT = Path(__file__).parents[4]
SIOCGIFADDR = 0x8915


@dataclass(frozen=True, slots=True)
class Shell:
    """What a pod with a remote shell gets."""

    programs: Path
    launchers: Path
    directory: Path

    def path(self) -> list[str]:
        """The directories that come first on PATH."""
        return [str(self.launchers), str(self.programs)]

    def memory(self) -> list[str]:
        """Directories that every pod has for itself. An MPI names its files and shared memory by host name and process
        id, and every pod counts its processes from 1.
        """
        return ["/dev/shm", str(self._temporary)]  # noqa: S108 - shared memory, not a temporary file

    def words(self, argv: list[str]) -> list[str]:
        """The command line with the stand-ins in place of absolute paths to ssh and sshd."""
        return [_ABSOLUTE.sub(lambda found: str(self.programs / found[1]), word) for word in argv]

    def variables(self, address: str, port: int, hostfile: str | None, declared: str) -> dict[str, str]:
        """The pod's variables. `hostfile` is the content of the launcher's hostfile, `declared` its path in the pod."""
        found = {wire.DIRECTORY: str(self.directory), wire.LISTEN: f"{address}:{port}"}
        only_loopback = address.startswith("127.") and has_only_loopback()  # not in a network of the pod's own
        found |= mpi.variables(only_loopback=only_loopback, temporary=self._temporary)
        nodes = mpi.hosts(hostfile) if hostfile is not None else []
        if nodes:
            found |= mpi.launcher_variables(nodes, declared=declared, open_mpi=self._open_mpi, hydra=self._hydra)
        return found

    def write_hostfiles(self, hostfile: str) -> None:
        nodes = mpi.hosts(hostfile)
        self._open_mpi.write_text(mpi.open_mpi_hostfile(nodes))
        self._hydra.write_text(mpi.hydra_hostfile(nodes))

    @property
    def work(self) -> Path:
        """The working directory: a launcher starts its processes elsewhere in the directory in which it runs itself."""
        return self.directory / "work"

    @property
    def _temporary(self) -> Path:
        return self.directory / "tmp"

    @property
    def _open_mpi(self) -> Path:
        return self.directory / "hostfile.openmpi"

    @property
    def _hydra(self) -> Path:
        return self.directory / "hostfile.hydra"


class Shells:
    """The remote shells of one node's pods."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = False

    def of(self, namespace: str, domain: str) -> Shell:
        return Shell(self._path / "bin", self._path / "launchers", self._path / "jobs" / f"{namespace}.{domain}")

    def prepare(self, shell: Shell) -> None:
        """Makes the job's directory, and the programs once."""
        for directory in (shell.directory / "tmp", shell.work):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._written:
            return
        for name in ("ssh", "sshd"):
            _write_program(shell.programs / name, name, str(shell.programs))
        for name in mpirun.NAMES:
            _write_program(shell.launchers / name, "mpirun", str(shell.launchers), name)
        self._written = True

    def release(self, namespace: str, domain: str) -> None:
        """Removes the directory of a job of which no pod is left."""
        shutil.rmtree(self.of(namespace, domain).directory, ignore_errors=True)


def _write_program(path: Path, module: str, *arguments: str) -> None:
    """A program that runs a module's `main`, whole at every moment: pods of an earlier start run it too."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = ", ".join(map(repr, arguments))
    code = (
        f"import sys; sys.path.insert(0, {str(_PACKAGE_ROOT)!r});"
        f" from trainwright.embedded.node.remoteshell.{module} import main;"
        f" sys.exit(main(sys.argv[1:], {words}))"
    )
    # Pods that start together write it at the same time, each in a thread of this process.
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    new.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S -E -c {shlex.quote(code)} "$@"\n')
    new.chmod(0o700)
    new.replace(path)


def has_only_loopback() -> bool:
    """Whether this machine has no IPv4 address but those of the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(sock, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # an interface without an address
                continue
            if not answer[20:24].startswith(b"\x7f"):
                return False
    return True
