"""A file that is being fetched: its bytes so far, and a journal of which of them can be trusted.

`KEY.part` holds the bytes, each range at its place. `KEY.log` begins with a line that says what is being fetched;
each further line is a range that is on disk. Invariant: a range is written to the journal only after its bytes are
on disk, so that neither a kill nor a power cut leaves a journal that promises more than there is. A last line that
was cut off, or a journal about something else, is ignored.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence

from trainwright.initializers.digests import Digest, Hasher
from trainwright.initializers.folder import Folder, failure

BLOCK = 8 * 2**20
"""How much is written between two entries of the journal: at most this much of a range is fetched again."""

_READ = 2**20
_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has fsync alone

Range = tuple[int, int]
"""From the first byte to the one after the last."""


class Partial:
    """The bytes of one item in a folder, fresh or as an earlier run left them. Close it, or `finish` it."""

    def __init__(self, folder: Folder, key: str, size: int | None, *, resume: bool, block: int = BLOCK) -> None:
        self.name = f"{key}.part"
        self.size = size
        self.block = block
        self._folder = folder
        self._log_name = f"{key}.log"
        self._head = _head(key, size)
        self._journals = resume and size is not None and size > block
        self._ranges = kept_ranges(folder, key, size) if self._journals else []
        self._grown = asyncio.Event()
        self.resumed = sum(end - start for start, end in self._ranges)
        fresh = 0 if self._ranges else os.O_TRUNC
        self._file = folder.open(self.name, os.O_RDWR | os.O_CREAT | fresh)
        self._log = -1
        if self._journals:
            self._log = folder.open(self._log_name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | fresh)
            os.write(self._log, b"\n" if self._ranges else self._head)  # after a line that was cut off, a new one

    def missing(self, longest: int) -> list[Range]:
        """What is still to be fetched, in ranges of at most `longest` bytes, in order."""
        assert self.size is not None
        gaps: list[Range] = []
        at = 0
        for start, end in [*self._ranges, (self.size, self.size)]:
            gaps.extend((first, min(first + longest, start)) for first in range(at, start, longest))
            at = end
        return gaps

    async def write(self, at: int, pieces: Sequence[bytes]) -> None:
        try:
            await asyncio.to_thread(_write_all, self._file, at, pieces)
        except OSError as error:
            raise failure(error, self._folder.path / self.name) from error

    async def keep(self, start: int, end: int) -> None:
        """From here on `start` to `end` need not be fetched again."""
        if start < end and self._journals:
            try:
                await asyncio.to_thread(_sync_data, self._file)
                os.write(self._log, b"%d %d\n" % (start, end))
            except OSError as error:
                raise failure(error, self._folder.path / self.name) from error
        self._ranges = merged([*self._ranges, (start, end)])
        self._grown.set()

    async def digest(self, expected: Digest) -> str:
        """The digest of the whole, computed as the bytes arrive from the front."""
        assert self.size is not None
        hasher, at = expected.hasher(self.size), 0
        while at < self.size:
            while at >= (ready := self._ranges[0][1] if self._ranges and self._ranges[0][0] == 0 else 0):
                self._grown.clear()
                await self._grown.wait()
            at = await asyncio.to_thread(_hash, self._file, hasher, at, min(ready, at + self.block))
        return hasher.hexdigest()

    def forget(self) -> None:
        """Begin again: nothing of what is here is trusted."""
        os.ftruncate(self._file, 0)
        self._ranges, self.resumed = [], 0
        if self._journals:
            os.ftruncate(self._log, 0)
            os.write(self._log, self._head)

    def settle_size(self, size: int) -> None:
        """Say how long a file is whose source did not."""
        self.size = size
        self._ranges = [(0, size)]

    async def finish(self, name: str) -> None:
        """All of it is here: wait until it is on disk, then give it its name."""
        assert self.size is not None
        try:
            os.ftruncate(self._file, self.size)
            await asyncio.to_thread(os.fsync, self._file)
        except OSError as error:
            raise failure(error, self._folder.path / self.name) from error
        self._folder.move(self.name, self._folder, name)
        self._folder.remove(self._log_name)

    def close(self) -> None:
        os.close(self._file)
        if self._log >= 0:
            os.close(self._log)


def merged(ranges: Sequence[Range]) -> list[Range]:
    """The same bytes in the fewest ranges, in order."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        elif start < end:
            result.append((start, end))
    return result


def kept_ranges(folder: Folder, key: str, size: int | None) -> list[Range]:
    """What an earlier run left of it: nothing when there is no journal, or it is of something else."""
    part = folder.stat(f"{key}.part")
    if size is None or part is None or folder.stat(f"{key}.log") is None:
        return []
    with os.fdopen(folder.open(f"{key}.log", os.O_RDONLY), "rb") as file:
        if file.readline() != _head(key, size):
            return []
        lines = file.read().split(b"\n")[:-1]
    ranges = []
    for line in lines:
        words = line.split()
        if len(words) == 2 and all(word.isdigit() for word in words):
            ranges.append((int(words[0]), min(int(words[1]), size, part.st_size)))
    return merged([(start, end) for start, end in ranges if start < end])


def _head(key: str, size: int | None) -> bytes:
    return json.dumps({"key": key, "size": size}).encode() + b"\n"


def _write_all(descriptor: int, at: int, pieces: Sequence[bytes]) -> None:
    data = b"".join(pieces) if len(pieces) > 1 else pieces[0]
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _hash(descriptor: int, hasher: Hasher, start: int, end: int) -> int:
    while start < end:
        data = os.pread(descriptor, min(_READ, end - start), start)
        if not data:
            raise OSError("the partial file is shorter than its journal")
        hasher.update(data)
        start += len(data)
    return start
