"""CPU and memory of a process, as the kernel accounts them, and the moment when it has nothing left to do.

Both contenders are measured from outside and alike: what their own metrics say about themselves is not used.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")

QUIET_SECONDS = 2.0
QUIET_SHARE = 0.02  # of a core: renewing a lease takes less, anything that is still being worked off takes more
LOOK_SECONDS = 0.25


class NeverQuiet(Exception):
    """A process went on working for longer than a scenario allows."""


@dataclass(frozen=True)
class Memory:
    """Resident memory in MB: now, and the most since the process began."""

    now: float
    peak: float


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, those that have ended included; in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> Memory:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kilobytes = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS:", "VmHWM:"))}
    return Memory(int(kilobytes["VmRSS"]) / 1024, int(kilobytes["VmHWM"]) / 1024)


def wait_until_quiet(pid: int, *, within: float) -> None:
    """Returns when the process has used next to no CPU for two seconds."""
    end = time.monotonic() + within
    looks = [(time.monotonic(), cpu_seconds(pid))]
    while time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        looks.append((time.monotonic(), cpu_seconds(pid)))
        window = [look for look in looks if look[0] >= looks[-1][0] - QUIET_SECONDS - LOOK_SECONDS]
        seconds, used = window[-1][0] - window[0][0], window[-1][1] - window[0][1]
        if seconds >= QUIET_SECONDS and used <= QUIET_SHARE * seconds:
            return
        looks = window
    raise NeverQuiet(f"process {pid} was still at work after {within:.0f} s")
