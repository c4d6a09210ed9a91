"""The identity of a process: pid, start time and boot id, so that a reused pid is never taken for the old process.

In: a pid, or an identity read from disk. Out: whether exactly that process still lives, and signals to it alone.
Invariant: no function here signals a process whose identity differs from the one given. Standard library only: the
supervisor imports this.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class ProcessIdentity(NamedTuple):
    """A process of this machine, in this boot. `start` is the kernel's start time, as text: it is only compared."""

    pid: int
    start: str
    boot: str


@cache
def boot_id() -> str:
    """An identifier that changes with every boot."""
    if sys.platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return _output("sysctl", "-n", "kern.boottime")


def start_time(pid: int, proc: Path = PROC) -> str | None:
    """The start time that the kernel reports, or None when there is no such process or only its zombie."""
    if sys.platform != "linux":
        fields = _output("ps", "-o", "state=,lstart=", "-p", str(pid)).split(maxsplit=1)
        return None if len(fields) < 2 or fields[0].startswith("Z") else fields[1]
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in parentheses and may contain anything, so fields are counted after the last parenthesis.
    state, *rest = stat[stat.rindex(b")") + 2 :].split()
    return None if state in (b"Z", b"X") else rest[18].decode()


def of(pid: int) -> ProcessIdentity | None:
    """The identity of a live process."""
    start = start_time(pid)
    return None if start is None else ProcessIdentity(pid, start, boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    return identity.boot == boot_id() and start_time(identity.pid) == identity.start


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signals exactly this process. False when it has ended, whatever process has its pid now."""
    if identity.boot != boot_id():
        return False
    if not hasattr(os, "pidfd_open"):
        return _signal_by_pid(identity, number)
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    try:
        # The open descriptor pins the process: once the start times agree, the signal cannot reach another one.
        if start_time(identity.pid) != identity.start:
            return False
        signal.pidfd_send_signal(pidfd, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)


def _signal_by_pid(identity: ProcessIdentity, number: signal.Signals) -> bool:
    if start_time(identity.pid) != identity.start:
        return False
    try:
        os.kill(identity.pid, number)
    except ProcessLookupError:
        return False
    return True


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
