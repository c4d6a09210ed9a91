"""Which lines of a log are wanted: the flags of `trainwright logs`, read. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainwright.api.times import rfc3339_nano, seconds_of
from trainwright.cli.failure import Failure
from trainwright.cli.logs.audience import Said

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_RANKS = 100_000


@dataclass(frozen=True)
class Selection:
    """`since` is a time as logs write it: RFC 3339 with nanoseconds, in UTC; such texts sort as times."""

    ranks: frozenset[int] | None = None
    tail: int | None = None
    since: str | None = None
    previous: bool = False

    def of(self, lines: Iterable[Said]) -> Iterator[Said]:
        """The lines that are wanted, in their order. `tail` counts the lines of each rank."""
        wanted = (
            line
            for line in lines
            if (self.ranks is None or line.rank in self.ranks) and (self.since is None or line.time >= self.since)
        )
        return wanted if self.tail is None else iter(_last(wanted, self.tail))


def _last(lines: Iterable[Said], count: int) -> list[Said]:
    kept: dict[str, deque[tuple[int, Said]]] = {}
    for number, line in enumerate(lines):
        kept.setdefault(line.label, deque(maxlen=count)).append((number, line))
    return [line for _, line in sorted(pair for lasts in kept.values() for pair in lasts)]


def ranks_of(text: str) -> frozenset[int]:
    """The ranks of `0`, `0,2` or `0-3,7`."""
    ranks: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        if not found or (found[2] and int(found[2]) < int(found[1])):
            raise Failure(f"--rank {text}: write a rank, or several as 0,2 or 0-3", 2)
        ranks.update(range(int(found[1]), int(found[2] or found[1]) + 1))
        if len(ranks) > MOST_RANKS:
            raise Failure(f"--rank {text}: these are more than {MOST_RANKS} ranks", 2)
    return frozenset(ranks)


def since_of(text: str, now: float) -> str:
    """The instant that `10m`, `1h30m`, `2d` (before now) or an RFC 3339 time means."""
    if re.fullmatch(r"(\d{1,9}[smhd])+", text):
        ago = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text))
        return rfc3339_nano(max(0, int((now - ago) * 1e9)))
    try:
        return rfc3339_nano(int(seconds_of(text) * 1e9))
    except ValueError:
        raise Failure(
            f"--since {text}: write how long ago, such as 10m or 1h30m, or a time such as 2026-01-31T12:00:00Z", 2
        ) from None
