"""Fetching: ranges of items from a source into partial files, several at once, tried again, checked.

In: an item and its `Partial`, which knows what an earlier run left. Out: the partial file whole, its digest
compared with what the source promises. A large file is fetched in several ranges at once; what arrives is on disk
and in the journal at least every `partial.BLOCK` bytes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import aclosing

from trainwright.clock import Clock
from trainwright.initializers.digests import Digest
from trainwright.initializers.errors import Changed, Damaged, Transient
from trainwright.initializers.names import printable
from trainwright.initializers.partial import Partial, Range
from trainwright.initializers.progress import Progress
from trainwright.initializers.retry import Patience, persist
from trainwright.initializers.source import Item, Source
from trainwright.initializers.together import together

CONNECTIONS = 8
SEGMENT = 64 * 2**20
"""How much one request asks for. Files up to this size are fetched by one."""

_WRITTEN = 2**20


class Fetcher:
    """Fetches items of one source. At most `CONNECTIONS` requests are under way, whatever asks for them."""

    def __init__(
        self, source: Source, progress: Progress, clock: Clock, retry_seconds: float, segment: int = SEGMENT
    ) -> None:
        self._source = source
        self._progress = progress
        self._clock = clock
        self._retry_seconds = retry_seconds
        self._segment = segment
        self._connections = asyncio.Semaphore(CONNECTIONS)

    async def fetch(self, item: Item, partial: Partial) -> None:
        """Every byte of the item, checked. Bytes from an earlier run that do not add up are fetched again, once."""
        if partial.resumed:
            self._progress.had(partial.resumed)
        try:
            await self._fetch_and_check(item, partial)
        except Damaged as error:
            resumed = partial.resumed
            partial.forget()
            if not resumed or isinstance(error, Changed):
                raise
            self._progress.say(f"{self._shown(item)}: what an earlier run left does not add up; fetching it again")
            self._progress.lost(resumed)
            await self._fetch_and_check(item, partial)

    async def _fetch_and_check(self, item: Item, partial: Partial) -> None:
        if item.size is None:
            await self._fetch_whole(item, partial)
        # A large file is hashed while it arrives. For a small one the source may learn its digest from the answer.
        large = item.size is not None and item.size > self._segment
        expected = await self.digest(item) if large else None
        async with together() as group:
            hashing = group.create_task(partial.digest(expected)) if expected else None
            ranges = partial.missing(self._segment if item.resumable else sys.maxsize)
            queue = iter(ranges)
            for _ in ranges[:CONNECTIONS]:
                group.create_task(self._work(item, partial, queue))
        if not large and (expected := await self.digest(item)):
            found = await partial.digest(expected)
        else:
            found = hashing.result() if hashing else ""
        if expected and found != expected.value:
            raise Damaged(
                f"{self._shown(item)}: the {expected.algorithm} is {found}, and the source says {expected.value}. "
                f"The file was not kept; run it again, and if it stays so, ask whoever provides the file"
            )

    async def digest(self, item: Item) -> Digest | None:
        """What the source says of the item's bytes, asked with patience."""
        return await persist(self._patience(item), lambda: self._source.digest(item))

    async def _work(self, item: Item, partial: Partial, ranges: Iterator[Range]) -> None:
        for start, end in ranges:
            async with self._connections:  # held while it waits, too: its deadline must not pass in a queue
                await self._fetch_range(item, partial, start, end)

    async def _fetch_range(self, item: Item, partial: Partial, start: int, end: int) -> None:
        writer = _Writer(partial, start, self._progress)
        patience = self._patience(item)
        while writer.at < end:
            try:
                async with aclosing(self._source.read(item, writer.at, end)) as pieces:
                    async for piece in pieces:
                        if writer.at + len(piece) > end:
                            raise Damaged(f"{self._shown(item)}: the server sent more than was asked for")
                        await writer.take(piece)
                        patience.reached(writer.at)
                    if writer.at < end:
                        raise Transient("the answer ended early")
            except Transient as fault:
                await writer.flush()
                if not item.resumable:
                    self._progress.lost(writer.at - start)
                    writer = _Writer(partial, start, self._progress)
                await patience.pause(fault)
        await writer.flush()

    async def _fetch_whole(self, item: Item, partial: Partial) -> None:
        """A file of unknown length: one stream from the beginning, whose end is the file's end."""
        async with self._connections:
            patience = self._patience(item)
            while True:
                writer = _Writer(partial, 0, self._progress)
                try:
                    async with aclosing(self._source.read(item, 0, None)) as pieces:
                        async for piece in pieces:
                            await writer.take(piece)
                            patience.reached(writer.at)
                    await writer.flush()
                    partial.settle_size(writer.at)
                    return
                except Transient as fault:
                    self._progress.lost(writer.at)
                    await patience.pause(fault)

    def _patience(self, item: Item) -> Patience:
        return Patience(self._shown(item), self._retry_seconds, self._clock, self._progress.say)

    def _shown(self, item: Item) -> str:
        return f"{self._source.uri}: {printable(item.name)}"


class _Writer:
    """Gathers pieces into writes, and writes into entries of the journal."""

    def __init__(self, partial: Partial, start: int, progress: Progress) -> None:
        self.at = start
        self._partial = partial
        self._progress = progress
        self._kept = self._written = start
        self._pieces: list[bytes] = []

    async def take(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.at += len(piece)
        self._progress.got(len(piece))
        if self.at - self._written >= min(_WRITTEN, self._partial.block):
            await self._write()
        if self._written - self._kept >= self._partial.block:
            await self.flush()

    async def flush(self) -> None:
        await self._write()
        await self._partial.keep(self._kept, self._written)
        self._kept = self._written

    async def _write(self) -> None:
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            await self._partial.write(self._written, pieces)
            self._written = self.at
