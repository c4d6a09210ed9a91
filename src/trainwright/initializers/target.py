"""The directory that receives the files, and the record of which of them are there.

`.trainwright/` in it holds a lock (one initializer at a time), `parts/` for what is not whole yet, and `fetched`: a
line of JSON for each file that was put in place, with its size and time. Invariants: a file appears under its name
only when it is whole, in one step; a line is written after its file is on disk. A file that was changed or removed
since is not taken for the one that was fetched.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from trainwright.clock import Clock
from trainwright.initializers.digests import Digest, Hasher
from trainwright.initializers.folder import Folder, failure
from trainwright.initializers.locks import Waiting, locked
from trainwright.initializers.names import RECORDS, Parts, parts_of
from trainwright.initializers.source import Item

_COPIED = 4 * 2**20
_FICLONE = 0x40049409  # Linux: share the blocks of another file, where the file system can


class _Record(msgspec.Struct, frozen=True):
    """A file as it was put in place."""

    name: str
    key: str
    size: int
    mtime_ns: int


_decoder = msgspec.json.Decoder(_Record)


class Target:
    """An open target. `parts` is the folder for what is not whole yet, on the same file system."""

    def __init__(self, folder: Folder, records: Folder, parts: Folder) -> None:
        self.folder = folder
        self.parts = parts
        self._records = records
        self._fetched = self._read_records()
        self._touched: set[Parts] = set()
        self._copies = itertools.count()
        self._log = records.open("fetched", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._log, b"\n")  # after a line that was cut off, a new one

    @classmethod
    @asynccontextmanager
    async def opened(cls, path: Path, clock: Clock, waiting: Waiting) -> AsyncIterator[Target]:
        """The target for this initializer alone; another one that fills it is waited for."""
        with Folder.at(path) as folder, folder.folder(RECORDS) as records, records.folder("parts") as parts:
            async with locked(records, "lock", clock, waiting, alone=True):
                target = cls(folder, records, parts)
                try:
                    yield target
                finally:
                    os.close(target._log)

    def has(self, item: Item) -> bool:
        """Whether the file is there as an earlier run put it."""
        record = self._fetched.get(item.name)
        if record is None or record.key != item.key or not item.resumable:
            return False
        *above, last = parts_of(item.name)
        with ExitStack() as opened:
            parent: Folder | None = self.folder
            for part in above:
                parent = parent.existing(part) if parent else None
                if parent:
                    opened.enter_context(parent)
            found = parent.stat(last) if parent else None
        return found is not None and (found.st_size, found.st_mtime_ns) == (record.size, record.mtime_ns)

    async def move_in(self, item: Item, name: str) -> None:
        """Take over the whole file `name` of `parts`."""
        await asyncio.to_thread(self._move_in, item, name)

    async def copy_in(self, item: Item, store: Folder, name: str, digest: Digest | None) -> bool:
        """Copy the whole file `name` of a store; False, and nothing is done, when its bytes do not have `digest`."""
        return await asyncio.to_thread(self._copy_in, item, store, name, digest)

    async def settle(self) -> None:
        """Wait until everything that was put in place is on disk, and tidy up."""
        for name in list(self.parts.names()):  # of files that the source no longer has
            self.parts.remove(name)
        await asyncio.to_thread(self._sync)

    def _copy_in(self, item: Item, store: Folder, name: str, digest: Digest | None) -> bool:
        # Not named by its key: that would count as checked, and equal files are copied at the same time.
        unchecked = f"{next(self._copies)}.copy"
        source = store.open(name, os.O_RDONLY)
        try:
            copy = self.parts.open(unchecked, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                size = os.fstat(source).st_size
                hasher = digest.hasher(size) if digest else None
                _copy(source, copy, hasher)
                os.fsync(copy)
            except OSError as error:
                raise failure(error, self.folder.path / item.name) from error
            finally:
                os.close(copy)
        finally:
            os.close(source)
        if digest and hasher and hasher.hexdigest() != digest.value:
            self.parts.remove(unchecked)
            return False
        self._move_in(item, unchecked)
        return True

    def _move_in(self, item: Item, name: str) -> None:
        *above, last = parts_of(item.name)
        with self._below(above) as parent:
            self.parts.move(name, parent, last)
            placed = parent.stat(last)
        assert placed is not None
        record = _Record(item.name, item.key, placed.st_size, placed.st_mtime_ns)
        os.write(self._log, msgspec.json.encode(record) + b"\n")
        self._fetched[item.name] = record
        self._touched.add(tuple(above))

    def _sync(self) -> None:
        os.fsync(self._log)
        for above in self._touched:
            for end in range(len(above) + 1):
                with self._below(above[:end]) as folder:
                    folder.sync()

    @contextmanager
    def _below(self, above: Sequence[str]) -> Iterator[Folder]:
        """A directory below the target, made where it is missing."""
        with ExitStack() as opened:
            folder = self.folder
            for part in above:
                folder = opened.enter_context(folder.folder(part))
            yield folder

    def _read_records(self) -> dict[str, _Record]:
        if self._records.stat("fetched") is None:
            return {}
        found = {}
        with os.fdopen(self._records.open("fetched", os.O_RDONLY), "rb") as file:
            for line in file:
                try:
                    record = _decoder.decode(line)
                except msgspec.DecodeError:
                    continue  # a line that was cut off, or of another version
                found[record.name] = record
        return found


def _copy(source: int, copy: int, hasher: Hasher | None) -> None:
    """All bytes of a file into an empty one; `hasher` sees them."""
    shared = _share_blocks(source, copy)
    if shared and hasher is None:
        return
    while data := os.read(source, _COPIED):
        if hasher:
            hasher.update(data)
        view = memoryview(b"" if shared else data)
        while view:
            view = view[os.write(copy, view) :]


def _share_blocks(source: int, copy: int) -> bool:
    """One set of blocks for both files until either is written to; only some file systems can."""
    try:
        fcntl.ioctl(copy, _FICLONE, source)
    except OSError:
        return False
    return True
