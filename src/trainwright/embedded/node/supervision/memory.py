"""The memory that a container's processes use, for a limit that no kernel enforces for us.

In: the pid of the container's keeper. Out: bytes. Resident sizes are quick to read but count shared pages once for each
process. When their sum is above the limit, the proportional sizes decide, in which processes divide their shared pages.
Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os

from trainwright.embedded.node.supervision import keeper

LOOK_SECONDS = 1.0
SOON_SECONDS = 0.2
"""How often a container is looked at that uses more than `NEAR` of its limit."""
NEAR = 0.8

_PAGE = os.sysconf("SC_PAGE_SIZE")


class MemoryLimit:
    """A container's limit in bytes. `exceeded_by` is what the container used when it was found to use too much."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.next_at = 0.0
        self.exceeded_by: int | None = None

    def look(self, kept_by: int, now: float) -> bool:
        """Whether the processes of the keeper `kept_by` use more than the limit."""
        if now < self.next_at:
            return False
        pids = keeper.descendants(kept_by)
        used = sum(resident(pid) for pid in pids)
        self.next_at = now + (SOON_SECONDS if used > NEAR * self.limit else LOOK_SECONDS)
        if used > self.limit:
            used = sum(proportional(pid) for pid in pids)
        if used <= self.limit:
            return False
        self.exceeded_by = used
        return True

    def message(self) -> str:
        assert self.exceeded_by is not None
        return f"used {in_mebibytes(self.exceeded_by)} of memory, more than its limit of {in_mebibytes(self.limit)}"


def killed_by_kernel(limit: int, peak: int | None) -> str:
    used = "" if peak is None else f" (it used {in_mebibytes(peak)})"
    return f"was killed by the kernel at its memory limit of {in_mebibytes(limit)}{used}"


def resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):  # it has ended
        return 0


def proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:  # it has ended, or is not ours to look at
        pass
    return resident(pid)


def in_mebibytes(amount: int) -> str:
    return f"{amount / 2**20:.0f}Mi"
