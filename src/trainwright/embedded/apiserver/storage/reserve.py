"""Space kept back on the disk of the store, so that objects can still be deleted and changed when it is full.

SQLite needs room in its log for every change, a deletion too. The reserve is a file that takes that room in good
times and is emptied in bad ones; then only changes to objects that exist are written, until it can be filled again.
"""

from __future__ import annotations

import os
from pathlib import Path

RESERVED_BYTES = 4 * 2**20


class Reserve:
    """One file. All methods are called by the store's writer, but for the first `fill`."""

    def __init__(self, path: Path, size: int = RESERVED_BYTES) -> None:
        self._path = path
        self._size = size
        self.is_spent = False

    def fill(self) -> bool:
        """Takes the space, if there is twice as much. Whether it is there now."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return not self.is_spent
        try:
            if os.fstat(handle).st_blocks * 512 >= self._size:
                self.is_spent = False
                return True
            there = os.fstatvfs(handle)
            if there.f_bavail * there.f_frsize < 2 * self._size:
                return False
            _allocate(handle, self._size)
            self.is_spent = False
            return True
        except OSError:
            _empty(handle)
            return False
        finally:
            os.close(handle)

    def release(self) -> bool:
        """Gives the space back; False when there was none."""
        if self.is_spent:
            return False
        self.is_spent = True
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            had = os.fstat(handle).st_blocks > 0
            _empty(handle)
            return had
        finally:
            os.close(handle)


def _allocate(handle: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.pwrite(handle, bytes(size), 0)


def _empty(handle: int) -> None:
    os.ftruncate(handle, 0)
