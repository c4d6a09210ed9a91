"""Sets of completion indexes in Kubernetes' notation: `0-2,4`."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str | None, completions: int) -> set[int]:
    """The indexes below `completions` that the text names."""
    found: set[int] = set()
    for part in (text or "").split(","):
        if part:
            first, _, last = part.partition("-")
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def write(indexes: Iterable[int]) -> str:
    """The text for the indexes. Runs of two are written `0,1`, longer ones `0-2`, as the Job controller does."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(",".join(map(str, run)) if len(run) <= 2 else f"{run[0]}-{run[-1]}" for run in runs)
