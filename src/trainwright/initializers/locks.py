"""Locks between initializers: `flock` on a file beside what it guards.

The kernel frees a lock when its holder ends, however it ends, so a crash leaves a lock file that nobody holds. A lock
file may be removed by whoever holds it alone; those who wait on the removed file notice and take the new one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from trainwright.clock import Clock
from trainwright.initializers.folder import Folder

POLL_SECONDS = 0.2
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of a file system without locks. There initializers do not wait for each other, as in the reference."""

Waiting = Callable[[], None]
"""Called once when another process has the lock."""


class Lock:
    """A lock that is held, shared with other readers or alone."""

    def __init__(self, descriptor: int, clock: Clock) -> None:
        self._descriptor = descriptor
        self._clock = clock

    async def share(self) -> None:
        """Changes the lock from exclusive to shared. For a moment nobody holds it: look again at what it guards."""
        while not _try(self._descriptor, fcntl.LOCK_SH):
            await self._clock.sleep(POLL_SECONDS)


@asynccontextmanager
async def locked(folder: Folder, name: str, clock: Clock, waiting: Waiting, *, alone: bool) -> AsyncIterator[Lock]:
    """Holds the lock `name`; waits until it is free."""
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    said = False
    while True:
        descriptor = folder.open(name, os.O_RDWR | os.O_CREAT)
        try:
            while not _try(descriptor, kind):
                if not said:
                    waiting()
                    said = True
                await clock.sleep(POLL_SECONDS)
            if os.fstat(descriptor).st_nlink:  # else its holder removed it while we waited
                yield Lock(descriptor, clock)
                return
        finally:
            os.close(descriptor)


@contextmanager
def locked_if_free(folder: Folder, name: str) -> Iterator[bool]:
    """Holds the lock `name` exclusively if it is free; yields whether it is held."""
    descriptor = folder.open(name, os.O_RDWR | os.O_CREAT)
    try:
        yield _try(descriptor, fcntl.LOCK_EX) and bool(os.fstat(descriptor).st_nlink)
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True
