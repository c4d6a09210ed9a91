"""How much room the disk of a cluster has, and the sentence that says so before it hurts."""

from __future__ import annotations

import os
from pathlib import Path

LEAST_SHARE = 0.05
LEAST_BYTES = 2**30


def pressure(path: Path) -> str:
    """What to tell about the disk that a directory lies on; empty while there is room."""
    try:
        there = os.statvfs(path)
    except OSError:
        return ""
    return judge(there.f_bavail * there.f_frsize, there.f_blocks * there.f_frsize, path)


def judge(free: int, total: int, path: Path) -> str:
    if total <= 0 or (free >= LEAST_BYTES and free >= LEAST_SHARE * total):
        return ""
    shown = f"{free / 2**30:.1f} GB" if free >= 2**30 else f"{free / 2**20:.0f} MB"
    return (
        f"the disk of {path} is nearly full: {shown} free ({free / total:.0%}). Training goes on, but its lines and"
        " checkpoints may be lost when it is full; make room, for example with: trainwright runs delete --finished"
    )
