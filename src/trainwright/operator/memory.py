"""Memory of a process that works in bursts: what is free goes back to the kernel when the work is done.

A list of thousands of objects, or a thousand TrainJobs at once, leaves holes in the allocator's heap that nobody asks
for again. glibc gives them back when it is told to (`malloc_trim`), which takes a few milliseconds; elsewhere nothing
happens.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from trainwright.clock import Clock

LOOK_SECONDS = 0.5


def settle_collector() -> None:
    """What is there now stays: modules and types. The collector need not look at them again. What comes from now on
    is mostly gone, or kept for good, before it is worth a look.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def give_back() -> None:
    import ctypes  # 1 MB and 5 ms that a process without work does not need

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Trimming:
    """`work` counts what has been done. When it stands still after it grew, memory is given back."""

    def __init__(self, work: Callable[[], int], clock: Clock, trim: Callable[[], None] = give_back) -> None:
        self._work = work
        self._clock = clock
        self._trim = trim

    async def run(self) -> None:
        """Until cancelled."""
        seen = trimmed = 0
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            done = self._work()
            if done == seen and done != trimmed:
                self._trim()
                trimmed = done
            seen = done
