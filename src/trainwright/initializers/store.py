"""Where the bytes of items are gathered: in a cache that initializers share, or beside the target.

A store is a folder with, for each key, `KEY` (whole), `KEY.part` and `KEY.log` (see `partial`) and `KEY.lock`.
Invariants: a file named `KEY` is complete and was checked when it came; only the holder of the lock alone writes or
removes anything of that key; readers share the lock. So two initializers that want the same thing fetch it once,
and the second waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from trainwright.clock import Clock
from trainwright.initializers.folder import Folder
from trainwright.initializers.locks import Lock, Waiting, locked, locked_if_free
from trainwright.initializers.partial import Partial, kept_ranges
from trainwright.initializers.source import Item

Fetch = Callable[[Partial], Awaitable[None]]
"""Brings a partial file to its end and checks it."""


class Store:
    """Items by key in a folder, which is the caller's to close."""

    def __init__(self, folder: Folder, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock

    def has(self, item: Item) -> bool:
        found = self.folder.stat(item.key)
        return found is not None and item.resumable and item.size in (None, found.st_size)

    def missing_bytes(self, item: Item) -> int:
        """How many bytes would have to be fetched for it."""
        if self.has(item):
            return 0
        kept = kept_ranges(self.folder, item.key, item.size) if item.resumable else []
        return (item.size or 0) - sum(end - start for start, end in kept)

    @asynccontextmanager
    async def holding(self, item: Item, fetch: Fetch, waiting: Waiting) -> AsyncIterator[None]:
        """The file `item.key` of the folder is whole, and stays so for as long as the block lasts."""
        while True:
            async with self._locked(item, waiting, alone=False):
                if self.has(item):
                    with suppress(OSError):  # a mark for `make_room`, on a file that may be somebody else's
                        os.utime(item.key, dir_fd=self.folder.descriptor)
                    yield
                    return
            async with self._locked(item, waiting, alone=True) as lock:
                if not self.has(item):
                    await self._fetch(item, fetch)
                await lock.share()
                if self.has(item):
                    yield
                    return

    @asynccontextmanager
    async def handing_over(self, item: Item, fetch: Fetch, waiting: Waiting) -> AsyncIterator[None]:
        """The file `item.key` of the folder is whole, for the block to move it away."""
        async with self._locked(item, waiting, alone=True):
            if not self.has(item):
                await self._fetch(item, fetch)
            yield
            self.folder.remove(f"{item.key}.lock")

    async def drop(self, item: Item, waiting: Waiting) -> None:
        """Remove a file whose bytes are not what they were."""
        async with self._locked(item, waiting, alone=True):
            self.folder.remove(item.key)

    def make_room(self, wanted: int, spared: Collection[str]) -> bool:
        """Frees `wanted` bytes, least recently used files first. Returns False and removes nothing if that cannot do.

        The keys in `spared` stay, and what somebody holds.
        """
        last_used: dict[str, float] = {}
        occupied = 0
        for name in self.folder.names():
            key = name.partition(".")[0]
            if key not in spared and (found := self.folder.stat(name)) is not None:
                last_used[key] = max(found.st_mtime, last_used.get(key, 0.0))
                occupied += found.st_blocks * 512
        if self.folder.free() + occupied < wanted:
            return False
        for key in sorted(last_used, key=last_used.__getitem__):
            if self.folder.free() >= wanted:
                break
            with locked_if_free(self.folder, f"{key}.lock") as held:
                for suffix in ("", ".part", ".log", ".lock") if held else ():
                    self.folder.remove(f"{key}{suffix}")
        return self.folder.free() >= wanted

    async def _fetch(self, item: Item, fetch: Fetch) -> None:
        partial = Partial(self.folder, item.key, item.size, resume=item.resumable)
        try:
            await fetch(partial)
            await partial.finish(item.key)
        finally:
            partial.close()
        await asyncio.to_thread(self.folder.sync)

    def _locked(self, item: Item, waiting: Waiting, *, alone: bool) -> AbstractAsyncContextManager[Lock]:
        return locked(self.folder, f"{item.key}.lock", self._clock, waiting, alone=alone)
