"""Ages as kubectl prints them: `4m24s`, `3h`, `12d`."""

from __future__ import annotations

import datetime

from trainwright.api import times


def human_duration(seconds: float) -> str:
    """The two most telling units, coarser the older."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    if total < 60 * 2:
        return f"{total}s"
    minutes = total // 60
    if minutes < 10:
        return _pair(minutes, "m", total % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    hours = total // 3600
    if hours < 8:
        return _pair(hours, "h", total // 60 % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _pair(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def parse(text: str | None) -> datetime.datetime | None:
    if not text:
        return None
    try:
        return times.moment_of(text)
    except ValueError:
        return None


def age_of(text: str | None, now: float) -> str:
    """`now` is in seconds since the epoch."""
    moment = parse(text)
    return "<unknown>" if moment is None else human_duration(now - moment.timestamp())
