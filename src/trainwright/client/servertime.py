"""The API server's clock, estimated from its `Date` headers.

Each answer bounds the offset: at some moment between our sending and receiving, the server's time was within the second
of its header. The offset is within the bounds of all recent answers. When an answer contradicts them, the server's
clock has been set, and the older answers are dropped. Between two answers time is counted by a clock that nobody sets:
our wall clock may jump by an hour, and no moment that we write down jumps with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from trainwright.http.dates import seconds_of_date


def _steady() -> float:
    """Seconds that only ever grow, those in which the machine slept included where the system counts them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServerTime:
    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady) -> None:
        self._steady = steady
        self._began = wall() - steady()
        self._least = float("-inf")
        self._most = float("inf")
        self._date, self._stamp = "", seconds_of_date("")  # a server says the same for a second

    def local(self) -> float:
        """Our own wall clock, as it was when we began, and what has passed since."""
        return self._began + self._steady()

    def now(self) -> float:
        """Seconds since the epoch by the server's clock; by ours until the first answer."""
        return self.local() + self.offset

    @property
    def offset(self) -> float:
        if self._least == float("-inf"):
            return 0.0
        if self._least <= 0.0 <= self._most:
            return 0.0  # our own clock is within the bounds
        return (self._least + self._most) / 2

    def observe(self, date: str | None, sent: float, received: float) -> None:
        if date is None:
            return
        if date != self._date:
            self._date, self._stamp = date, seconds_of_date(date)
        stamp = self._stamp
        if stamp is None:
            return  # not a date: perhaps from a proxy
        least, most = stamp - received, stamp + 1.0 - sent
        if least > self._most or most < self._least:
            self._least, self._most = least, most
        else:
            self._least, self._most = max(self._least, least), min(self._most, most)
