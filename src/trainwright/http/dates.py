"""Moments as HTTP writes them: `Thu, 01 Jan 2026 00:00:00 GMT`."""

from __future__ import annotations

import time
from datetime import UTC, datetime

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class DateHeader:
    """The value of a Date header; made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def at(self, seconds: float) -> str:
        second = int(seconds)
        if second != self._second:
            moment = time.gmtime(second)
            day, month = DAYS[moment.tm_wday], MONTHS[moment.tm_mon - 1]
            self._text = time.strftime(f"{day}, %d {month} %Y %H:%M:%S GMT", moment)
            self._second = second
        return self._text


def seconds_of_date(date: str) -> float | None:
    """The moment in a header; None when it is none."""
    try:
        _, day, month, year, clock, zone = date.split(" ")
        hours, minutes, seconds = clock.split(":")
        month_number = MONTHS.index(month) + 1
        moment = datetime(int(year), month_number, int(day), int(hours), int(minutes), int(seconds), tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() if zone == "GMT" else None
