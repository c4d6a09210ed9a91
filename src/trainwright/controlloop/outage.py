"""An API server that cannot be reached: one informer of a process looks for it, and the others learn from it.

Each would come back by its own back-off, up to a minute after the server. So the first that waits is the scout: it
tries again after a few seconds at most. The others wait longer, and all go on as soon as anybody has had an answer.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from trainwright.client import Client
from trainwright.clock import Clock, happens_within

SCOUT_SECONDS = 4.0
OTHERS_SECONDS = 30.0

_OUTAGES: WeakKeyDictionary[Client, Outage] = WeakKeyDictionary()


class Outage:
    """Of one client. `over` is called with each sign of life."""

    def __init__(self) -> None:
        self._scout: object | None = None
        self._over: asyncio.Future[None] | None = None

    @classmethod
    def of(cls, client: Client) -> Outage:
        return _OUTAGES.setdefault(client, cls())

    def over(self) -> None:
        if self._over is not None:
            self._over.set_result(None)
            self._over = None

    async def wait(self, clock: Clock, who: object, seconds: float) -> None:
        """Until it is over, or it is this one's turn to try; `seconds` is its own back-off."""
        if self._scout is None:
            self._scout = who
        is_scout = self._scout is who
        pause = min(seconds, SCOUT_SECONDS) if is_scout else max(seconds, OTHERS_SECONDS)
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
        try:
            await happens_within(clock, pause, self._over)
        finally:
            if is_scout:
                self._scout = None
