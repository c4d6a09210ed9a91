"""The API server's clock, as far as its `Date` headers tell.

Each answer says that the server's time was within one second of its header, at some moment between our sending and
receiving. The offset is what all recent answers allow; when an answer contradicts them, a clock has jumped and the
older ones are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime


class ServerTime:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._least = float("-inf")
        self._most = float("inf")

    def local(self) -> float:
        """Our own wall clock."""
        return self._now()

    def now(self) -> float:
        """Seconds since the epoch by the server's clock; by ours as long as no answer has been seen."""
        return self._now() + self.offset

    @property
    def offset(self) -> float:
        if self._least == float("-inf"):
            return 0.0
        if self._least <= 0.0 <= self._most:
            return 0.0  # nothing speaks against our own clock
        return (self._least + self._most) / 2

    def observe(self, date: str | None, sent: float, received: float) -> None:
        if date is None:
            return
        try:
            stamp = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return  # a proxy's idea of a date tells us nothing
        least, most = stamp - received, stamp + 1.0 - sent
        if least > self._most or most < self._least:
            self._least, self._most = least, most
        else:
            self._least, self._most = max(self._least, least), min(self._most, most)
