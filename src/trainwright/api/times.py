"""Time as Kubernetes writes it: RFC 3339 in UTC, from and to seconds since the epoch or a datetime.

`rfc3339` writes metav1.Time (whole seconds), `rfc3339_micro` metav1.MicroTime, `rfc3339_nano` the nine digits of
container logs. `moment_of` and `seconds_of` read any RFC 3339 text and raise `ValueError` for anything else. Standard
library only: the pods' supervisors import this file.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def rfc3339(instant: float | datetime) -> str:
    """`2026-01-01T00:00:00Z`: the fraction is cut off."""
    return f"{_utc(instant).isoformat(timespec='seconds')}Z"


def rfc3339_micro(instant: float | datetime) -> str:
    """`2026-01-01T00:00:00.000000Z`."""
    return f"{_utc(instant).isoformat(timespec='microseconds')}Z"


def rfc3339_nano(nanoseconds: int) -> str:
    """`2026-01-01T00:00:00.000000000Z`, from nanoseconds since the epoch. All nine digits: such texts sort as times."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_utc(seconds).isoformat(timespec='seconds')}.{rest:09d}Z"


def moment_of(text: str) -> datetime:
    """The instant in UTC, to the microsecond; `ValueError` when the text is not RFC 3339."""
    found = _RFC3339.fullmatch(text)
    if found is not None:
        whole, fraction, zone = found.groups("")
        try:
            return datetime.fromisoformat(f"{whole}.{fraction[:6]:0<6}{zone}").astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # 30 February, or an offset that leads out of the years 1 to 9999
    raise ValueError(f"{text!r} is not an RFC 3339 time")


def seconds_of(text: str) -> float:
    """The instant in seconds since the epoch; `ValueError` when the text is not RFC 3339."""
    return moment_of(text).timestamp()


def _utc(instant: float | datetime) -> datetime:
    """The instant in UTC without a time zone, so that its `isoformat` ends with the time."""
    moment = instant.astimezone(UTC) if isinstance(instant, datetime) else datetime.fromtimestamp(instant, UTC)
    return moment.replace(tzinfo=None)
