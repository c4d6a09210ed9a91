"""A length of time for people, in its two largest units, as kubectl prints it: `45s`, `3m20s`, `5h10m`, `3d`."""

from __future__ import annotations

_UNITS = ((120, 1, "s", 0, ""), (7200, 60, "m", 1, "s"), (172800, 3600, "h", 60, "m"))


def duration(seconds: float) -> str:
    seconds = max(0, int(seconds))
    for limit, size, unit, rest, small in _UNITS:
        if seconds < limit:
            whole, left = divmod(seconds, size)
            return f"{whole}{unit}" + (f"{left // rest}{small}" if rest and left // rest and whole < 10 else "")
    return f"{seconds // 86400}d"
