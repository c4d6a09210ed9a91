"""Partial files: what is kept over a crash is what is on disk, and no more."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.initializers.digests import Digest
from trainwright.initializers.folder import Folder
from trainwright.initializers.partial import Partial, kept_ranges, merged

SIZE = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.at(tmp_path) as opened:
        yield opened


def opened(folder: Folder, key: str = "key", size: int | None = SIZE, *, resume: bool = True) -> Partial:
    return Partial(folder, key, size, resume=resume, block=10)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50))))
def test_merged_ranges_hold_the_same_bytes(ranges: list[tuple[int, int]]) -> None:
    found = merged(ranges)
    assert {byte for start, end in found for byte in range(start, end)} == {
        byte for start, end in ranges for byte in range(start, end)
    }
    assert all(before[1] < after[0] for before, after in pairwise(found))


async def test_what_was_kept_is_not_missing_after_a_crash(folder: Folder) -> None:
    partial = opened(folder)
    await partial.write(0, [b"a" * 100, b"b" * 100])
    await partial.keep(0, 200)
    await partial.write(500, [b"c" * 100])
    await partial.keep(500, 600)
    await partial.write(700, [b"d" * 300])  # and then the process dies
    partial.close()
    again = opened(folder)
    assert again.resumed == 300
    assert again.missing(250) == [(200, 450), (450, 500), (600, 850), (850, 1000)]
    again.close()


@pytest.mark.parametrize(
    "tail",
    [b"300 4", b"300", b"\xff\xfe\n", b"400 300\n", b"-1 5\n", b"1 2 3\n", b"900 99999\n"],
)
async def test_lines_that_are_damaged_promise_nothing(tail: bytes, folder: Folder, tmp_path: Path) -> None:
    partial = opened(folder)
    await partial.write(0, [b"x" * 200])
    await partial.keep(0, 100)
    partial.close()
    with (tmp_path / "key.log").open("ab") as log:
        log.write(tail)
    again = opened(folder)
    assert again.missing(SIZE) == [(100, SIZE)]
    await again.keep(100, 200)  # a line that was cut off does not spoil the next one
    again.close()
    assert kept_ranges(folder, "key", SIZE) == [(0, 200)]


async def test_another_size_or_key_begins_again(folder: Folder, tmp_path: Path) -> None:
    partial = opened(folder)
    await partial.write(0, [b"x" * 100])
    await partial.keep(0, 100)
    partial.close()
    (tmp_path / "other.part").write_bytes(b"x" * 100)
    (tmp_path / "other.log").write_bytes((tmp_path / "key.log").read_bytes())
    for key, size in (("key", SIZE + 1), ("other", SIZE)):
        again = opened(folder, key, size)
        assert again.resumed == 0
        again.close()


async def test_a_journal_without_its_file_promises_nothing(folder: Folder, tmp_path: Path) -> None:
    partial = opened(folder)
    await partial.write(0, [b"x" * 200])
    await partial.keep(0, 200)
    partial.close()
    with (tmp_path / "key.part").open("r+b") as file:
        file.truncate(50)
    assert kept_ranges(folder, "key", SIZE) == [(0, 50)]
    (tmp_path / "key.part").unlink()
    assert kept_ranges(folder, "key", SIZE) == []


async def test_what_cannot_be_resumed_leaves_no_journal(folder: Folder, tmp_path: Path) -> None:
    for partial in (opened(folder, "a", resume=False), opened(folder, "b", None), opened(folder, "c", 5)):
        await partial.write(0, [b"12345"])
        await partial.keep(0, 5)
        partial.close()
    assert not list(tmp_path.glob("*.log"))


async def test_the_digest_follows_bytes_that_arrive_in_any_order(folder: Folder) -> None:
    content = bytes(range(250)) * 4
    expected = Digest("sha256", hashlib.sha256(content).hexdigest())
    partial = opened(folder)
    async with asyncio.TaskGroup() as group:
        hashing = group.create_task(partial.digest(expected))
        for start in (500, 0, 750, 250):
            await partial.write(start, [content[start : start + 250]])
            await partial.keep(start, start + 250)
    assert hashing.result() == expected.value
    await partial.finish("whole")
    partial.close()
    assert sorted(folder.names()) == ["whole"]
    assert (folder.path / "whole").read_bytes() == content
