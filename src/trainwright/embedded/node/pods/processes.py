"""The processes of a pod, as /proc shows them: all that descends from its supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def descendants(pid: int, proc: Path = PROC) -> Iterator[int]:
    """Children first, each with its own descendants; a process that ends meanwhile is left out."""
    for task in sorted((proc / str(pid) / "task").glob("*")):
        try:
            children = (task / "children").read_bytes().split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from descendants(int(child), proc)
