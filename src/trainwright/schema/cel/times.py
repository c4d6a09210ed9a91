"""Parts of timestamps and durations in CEL."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from trainwright.schema.cel.signatures import Function, Signatures, need
from trainwright.schema.cel.values import CelError, Duration


def _time_part(of_timestamp: Callable[[dt.datetime], int], of_duration: int = 0) -> Function:
    def part(value: Any, zone: Any = "UTC") -> int:
        if isinstance(value, Duration) and of_duration:
            return int(value.nanos / of_duration)
        need(value, dt.datetime)
        return of_timestamp(value.astimezone(_zone(zone)))

    return part


def _zone(name: str) -> dt.tzinfo:
    if match := re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", name):
        minutes = int(match[2]) * 60 + int(match[3])
        return dt.timezone(dt.timedelta(minutes=-minutes if match[1] == "-" else minutes))
    if name in ("UTC", ""):
        return dt.UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


GLOBAL: Signatures = {}

NAMESPACED: Signatures = {}

MEMBER: Signatures = {
    "getFullYear": (_time_part(lambda t: t.year), 0, 1),
    "getMonth": (_time_part(lambda t: t.month - 1), 0, 1),
    "getDate": (_time_part(lambda t: t.day), 0, 1),
    "getDayOfMonth": (_time_part(lambda t: t.day - 1), 0, 1),
    "getDayOfWeek": (_time_part(lambda t: t.isoweekday() % 7), 0, 1),
    "getDayOfYear": (_time_part(lambda t: t.timetuple().tm_yday - 1), 0, 1),
    "getHours": (_time_part(lambda t: t.hour, 3600 * 10**9), 0, 1),
    "getMinutes": (_time_part(lambda t: t.minute, 60 * 10**9), 0, 1),
    "getSeconds": (_time_part(lambda t: t.second, 10**9), 0, 1),
    "getMilliseconds": (_time_part(lambda t: t.microsecond // 1000, 10**6), 0, 1),
}
