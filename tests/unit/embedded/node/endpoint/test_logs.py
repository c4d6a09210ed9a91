"""Container logs are written and read: every byte, every option, across rotation."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfcheck.leftovers import Tasks
from trainwright.api.times import rfc3339_nano
from trainwright.embedded.node.endpoint.logs import LogOptions, RecordReader, read
from trainwright.embedded.node.endpoint.server import BadOption, options_of
from trainwright.embedded.node.supervision.crilog import LogFile, OutputStream, rotated
from waiting import until


def over() -> bool:
    return True


async def collect(path: Path, options: LogOptions | None = None) -> bytes:
    return b"".join([piece async for piece in read(path, options or LogOptions(), over)])


def write(path: Path, *chunks: bytes, max_bytes: int = 10**9) -> None:
    log = LogFile(path, max_bytes=max_bytes)
    stream = OutputStream("stdout", log)
    for chunk in chunks:
        stream.feed(chunk)
    stream.flush()
    log.close()


@settings(deadline=None)
@given(chunks=st.lists(st.binary(max_size=60) | st.sampled_from([b"\n", b"a\nb", b"x" * 20000]), max_size=12))
def test_what_was_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("log") / "0.log"
    write(path, *chunks)
    assert asyncio.run(collect(path)) == b"".join(chunks)


async def test_turning_to_new_files_loses_only_the_oldest(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    lines = [f"{number:05d}\n".encode() for number in range(2000)]
    write(path, *lines, max_bytes=8192)
    assert len(list(tmp_path.iterdir())) == 5
    kept = (await collect(path)).splitlines(keepends=True)
    assert 0 < len(kept) < 2000
    assert kept == lines[-len(kept) :]


@pytest.mark.parametrize(
    ("lines", "expected"), [(0, b""), (1, b"end"), (2, b"three\nend"), (99, b"one\ntwo\nthree\nend")]
)
async def test_tail_counts_lines_and_an_unfinished_one_is_one(tmp_path: Path, lines: int, expected: bytes) -> None:
    write(tmp_path / "0.log", b"one\ntwo\nthree\nend")
    assert await collect(tmp_path / "0.log", LogOptions(tail_lines=lines)) == expected


async def test_tail_reaches_back_into_older_files(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    write(path, *[f"{number}\n".encode() for number in range(100)], max_bytes=1000)
    assert rotated(path, 1).exists()
    assert (await collect(path, LogOptions(tail_lines=30))).split() == [str(n).encode() for n in range(70, 100)]


async def test_timestamps_stand_once_before_each_line(tmp_path: Path) -> None:
    write(tmp_path / "0.log", b"x" * 20000, b"x\ny\n")
    first, second = (await collect(tmp_path / "0.log", LogOptions(timestamps=True))).splitlines()
    assert first.split(b" ", 1)[1] == b"x" * 20001
    assert second.endswith(b"Z y")


async def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(
        b"2026-01-01T00:00:00.000000000Z stdout F old\n2026-01-01T00:00:05.500000000Z stderr F new\n"
        b"2026-01-01T00:00:06.000000000Z stdout F newer\n"
    )
    assert await collect(path, LogOptions(since="2026-01-01T00:00:05.500000000Z")) == b"new\nnewer\n"
    assert await collect(path, LogOptions(since="2026-01-01T00:00:00.000000001Z", tail_lines=1)) == b"newer\n"


async def test_limit_bytes_cuts(tmp_path: Path) -> None:
    write(tmp_path / "0.log", b"one\ntwo\nthree\n")
    assert await collect(tmp_path / "0.log", LogOptions(limit_bytes=5)) == b"one\nt"


async def test_following_shows_what_is_written_until_the_container_is_over(tmp_path: Path, tasks: Tasks) -> None:
    path = tmp_path / "0.log"
    log = LogFile(path, max_bytes=200)  # turns to a new file every few lines
    stream = OutputStream("stdout", log)
    ended = False
    pieces: list[bytes] = []

    async def follow() -> None:
        async for piece in read(path, LogOptions(follow=True), lambda: ended):
            pieces.append(piece)

    def has_read(number: int) -> bool:
        return b"".join(pieces).count(b"\n") > number

    task = tasks.start(follow())
    for number in range(30):
        stream.feed(f"{number}\n".encode())
        if number % 3 == 0:
            await until("the line to be read", functools.partial(has_read, number))
    ended = True
    await task
    assert b"".join(pieces).split() == [str(number).encode() for number in range(30)]


def test_a_closed_reader_reads_nothing_more(tmp_path: Path) -> None:
    write(tmp_path / "0.log", b"one\n")
    reader = RecordReader(tmp_path / "0.log")
    reader.close()
    assert reader.next_records() == []


def test_timestamps_sort_as_text() -> None:
    assert rfc3339_nano(1_700_000_000_000_000_001) == "2023-11-14T22:13:20.000000001Z"


def test_options_are_read_as_kubectl_sends_them() -> None:
    options = options_of({"follow": "true", "tailLines": "0", "sinceSeconds": "10", "limitBytes": "5"}, 1_700_000_010.0)
    assert options == LogOptions(follow=True, tail_lines=0, since="2023-11-14T22:13:20.000000000Z", limit_bytes=5)
    assert options_of({"sinceTime": "2023-11-14T23:13:20+01:00"}, 0).since == "2023-11-14T22:13:20.000000000Z"


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"},
        {"sinceSeconds": "0"},
        {"limitBytes": "x"},
        {"sinceTime": "yesterday"},
        {"sinceTime": "2026-01-01T00:00:00Z", "sinceSeconds": "1"},
    ],
)
def test_options_that_make_no_sense_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadOption):
        options_of(query, 0)
