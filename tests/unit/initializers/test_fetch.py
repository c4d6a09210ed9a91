"""Fetching from a source in memory: ranges at once, only what is missing, and bytes that are wrong."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from trainwright.clock import SystemClock, VirtualClock
from trainwright.initializers.digests import Digest
from trainwright.initializers.errors import Damaged, NotPermitted, Transient
from trainwright.initializers.fetch import Fetcher
from trainwright.initializers.folder import Folder
from trainwright.initializers.partial import Partial
from trainwright.initializers.progress import Progress
from trainwright.initializers.source import Item

SIZE = 10_000
CONTENT = hashlib.shake_256(b"content").digest(SIZE)
ITEM = Item("file", SIZE, "identity", "", Digest("sha256", hashlib.sha256(CONTENT).hexdigest()))


class Memory:
    """A source whose bytes are in memory. `faults` are raised after half of a range, one for each request."""

    uri = "memory://"
    is_cached = True

    def __init__(self, content: bytes = CONTENT, faults: list[Exception] | None = None, more: bytes = b"") -> None:
        self.content = content
        self.asked: list[tuple[int, int | None]] = []
        self._faults = faults or []
        self._more = more

    async def items(self) -> list[Item]:
        return [ITEM]

    async def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        self.asked.append((start, end))
        wanted = self.content[start:end]
        half = len(wanted) // 2
        yield wanted[:half]
        if self._faults:
            raise self._faults.pop(0)
        yield wanted[half:] + self._more

    async def digest(self, item: Item) -> Digest | None:
        return item.digest


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.at(tmp_path) as opened:
        yield opened


async def fetch(source: Memory, folder: Folder, item: Item = ITEM, clock: SystemClock | None = None) -> Progress:
    clock = clock or SystemClock()
    progress = Progress("dataset", io.StringIO(), clock, live=False)
    fetching = Fetcher(source, progress, clock, retry_seconds=30, segment=3000)
    partial = Partial(folder, "key", item.size, resume=item.resumable, block=500)
    try:
        await fetching.fetch(item, partial)
        await partial.finish("whole")
    finally:
        partial.close()
    return progress


async def test_a_large_file_comes_in_ranges(folder: Folder, tmp_path: Path) -> None:
    source = Memory()
    await fetch(source, folder)
    assert (tmp_path / "whole").read_bytes() == CONTENT
    assert sorted(source.asked) == [(0, 3000), (3000, 6000), (6000, 9000), (9000, SIZE)]


async def test_only_what_is_missing_is_asked_for(folder: Folder, tmp_path: Path) -> None:
    broken = Memory(faults=[NotPermitted("no more")] * 4)
    with pytest.raises(NotPermitted):
        await fetch(broken, folder)
    kept = Partial(folder, "key", SIZE, resume=True, block=500)
    missing = kept.missing(3000)
    kept.close()
    assert 0 < kept.resumed < SIZE
    source = Memory()
    progress = await fetch(source, folder)
    assert sorted(source.asked) == missing
    assert progress.fetched == SIZE - kept.resumed
    assert (tmp_path / "whole").read_bytes() == CONTENT


async def test_a_cut_is_continued_where_it_was(folder: Folder, tmp_path: Path) -> None:
    source = Memory(faults=[Transient("cut", retry_after=0)])
    await fetch(source, folder)
    (again,) = (asked for asked in source.asked if asked[0] % 3000)
    assert again in [(1500, 3000), (4500, 6000), (7500, 9000), (9500, SIZE)]
    assert len(source.asked) == 5
    assert (tmp_path / "whole").read_bytes() == CONTENT


async def test_what_cannot_be_resumed_comes_in_one_piece_and_again_from_the_start(
    folder: Folder, tmp_path: Path
) -> None:
    source = Memory(faults=[Transient("cut", retry_after=0)])
    item = Item("file", SIZE, "identity", "", resumable=False)
    await fetch(source, folder, item)
    assert source.asked == [(0, SIZE), (0, SIZE)]
    assert (tmp_path / "whole").read_bytes() == CONTENT


async def test_wrong_bytes_are_not_kept_for_the_next_run(folder: Folder, tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="the sha256 is"):
        await fetch(Memory(content=CONTENT[:-1] + b"?"), folder)
    assert not (tmp_path / "whole").exists()
    source = Memory()
    await fetch(source, folder)
    assert len(source.asked) == 4
    assert (tmp_path / "whole").read_bytes() == CONTENT


async def test_more_bytes_than_asked_for_are_refused(folder: Folder) -> None:
    with pytest.raises(Damaged, match="sent more than was asked for"):
        await fetch(Memory(more=b"x"), folder)


class Slow(Memory):
    """A source that serves one request at a time, for a minute each, and fails each one once."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._failed: set[int] = set()

    async def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        await self._clock.sleep(60)
        if start not in self._failed:
            self._failed.add(start)
            raise Transient("busy", retry_after=1)
        yield self.content[start:end]


async def test_the_deadline_does_not_pass_while_a_range_waits_for_its_turn(folder: Folder, tmp_path: Path) -> None:
    """Forty ranges of two minutes each, on eight connections: each range is patient for itself."""
    clock = VirtualClock()
    source = Slow(clock)
    progress = Progress("dataset", io.StringIO(), clock, live=False)
    partial = Partial(folder, "key", SIZE, resume=True, block=500)
    fetching = Fetcher(source, progress, clock, retry_seconds=100, segment=250)
    task = asyncio.ensure_future(fetching.fetch(ITEM, partial))
    while not task.done():
        await clock.advance(10)
        await asyncio.sleep(0.001)  # threads write
    await task
    await partial.finish("whole")
    partial.close()
    assert (tmp_path / "whole").read_bytes() == CONTENT
    assert clock.now() - 1000 > 5 * 121


class Growing(SystemClock):
    """While the client waits, the file becomes what was promised."""

    def __init__(self, source: Memory) -> None:
        self._source = source

    async def sleep(self, seconds: float) -> None:
        self._source.content = CONTENT


async def test_a_file_that_ends_early_is_asked_for_again(folder: Folder, tmp_path: Path) -> None:
    source = Memory(content=CONTENT[:1000])
    await fetch(source, folder, Item("file", 1200, "identity", ""), Growing(source))
    assert (tmp_path / "whole").read_bytes() == CONTENT[:1200]
    assert source.asked == [(0, 1200), (1000, 1200)]
