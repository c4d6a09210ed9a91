"""Reads a container's log back, with the options of `kubectl logs`.

In: the log's path and `LogOptions`. Out: the bytes that the container wrote, in order, or the part that the options
select. Options apply in the order since, tail, timestamps, limit. With `follow`, the reader waits for more until the
container is over.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainwright.embedded.node.supervision.crilog import rotated

BLOCK = 256 * 1024
FIRST_POLL_SECONDS, POLL_SECONDS = 0.005, 0.1
"""A program that has just started says something soon; one that is silent stays so for a while."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """`since` is an instant as the log writes it (RFC 3339 with nanoseconds): such texts sort as times."""

    follow: bool = False
    tail_lines: int | None = None
    since: str | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class Output:
    """Turns records into bytes: a part (`P`) without its newline, a timestamp only where a line begins."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._left = options.limit_bytes
        self._line_open = False

    @property
    def is_full(self) -> bool:
        return self._left is not None and self._left <= 0

    def of(self, records: Iterator[bytes] | list[bytes]) -> bytes:
        since = self._options.since.encode() if self._options.since else None
        pieces: list[bytes] = []
        for record in records:
            stamp, _, tag, text = record.split(b" ", 3)
            if since is not None and stamp < since:
                continue
            if self._options.timestamps and not self._line_open:
                pieces += (stamp, b" ")
            pieces.append(text)
            self._line_open = tag != b"F"
            if not self._line_open:
                pieces.append(b"\n")
        data = b"".join(pieces)
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        return data


async def read(path: Path, options: LogOptions, is_over: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    """The log in pieces. `is_over` says whether the container has ended, so that nothing more will be written. Files
    are read in threads: the disk may be slow, and the node shares its event loop with the API server.
    """
    output = Output(options)
    reader = await asyncio.to_thread(RecordReader, path)

    def next_records() -> tuple[list[bytes], bool]:
        over = is_over()  # first, so that everything written before the end is read below
        return reader.next_records(), over

    try:
        if options.tail_lines is not None:
            data = output.of(await asyncio.to_thread(_tail, reader, options.tail_lines, options.since))
            if data:
                yield data
        pause = FIRST_POLL_SECONDS
        while not output.is_full:
            records, over = await asyncio.to_thread(next_records)
            if records:
                pause = FIRST_POLL_SECONDS
                if data := output.of(records):
                    yield data
            elif over or not options.follow:
                return
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, POLL_SECONDS)
    finally:
        reader.close()


def _tail(reader: RecordReader, lines: int, since: str | None) -> list[bytes]:
    """The last lines that are there now, as records. Leaves the reader at the end of the log."""
    kept: deque[list[bytes]] = deque(maxlen=lines) if lines else deque(maxlen=1)
    line: list[bytes] = []
    earliest = since.encode() if since else b""
    while records := reader.next_records():
        for record in records:
            if record.split(b" ", 1)[0] < earliest:
                continue
            line.append(record)
            if record.split(b" ", 3)[2] == b"F":
                kept.append(line)
                line = []
    if not lines:
        return []
    if line:  # an unfinished line counts as one
        kept.append(line)
    return [record for whole in kept for record in whole]


class RecordReader:
    """Whole records of a log, oldest first, across rotations.

    Closing waits for the block that a thread is reading, so that no thread reads from a descriptor that has been
    closed and reused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._closed = False
        # All files are opened at once, so that a rotation does not move any of them out of reach.
        self._files = deque(_open_existing(path))
        self._rest = b""

    def next_records(self) -> list[bytes]:
        """The next whole records; none when everything that is there has been read."""
        with self._lock:
            return [] if self._closed else self._next_records()

    def _next_records(self) -> list[bytes]:
        while True:
            if not self._files:
                self._files.extend(_open_existing(self._path)[-1:])
                if not self._files:
                    return []
            data = os.read(self._files[0], BLOCK)
            if data:
                lines = (self._rest + data).split(b"\n")
                self._rest = lines.pop()
                if lines:
                    return lines
            elif not self._turn():
                return []

    def _turn(self) -> bool:
        """Moves on to the next file. False when the current file is the newest."""
        if len(self._files) == 1:
            present = os.fstat(self._files[0])
            newer = []
            for number in itertools.count():
                try:
                    descriptor = os.open(rotated(self._path, number), os.O_RDONLY)
                except FileNotFoundError:
                    break
                if os.path.samestat(os.fstat(descriptor), present):
                    os.close(descriptor)
                    break
                newer.append(descriptor)
            if not newer:
                return False
            self._files.extend(reversed(newer))
        os.close(self._files.popleft())
        return True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._files:
                os.close(self._files.popleft())


def _open_existing(path: Path) -> list[int]:
    """The log's files, oldest first. A rotation in between shows one file twice: it is taken once."""
    found: dict[tuple[int, int], int] = {}
    for number in itertools.count():
        try:
            descriptor = os.open(rotated(path, number), os.O_RDONLY)
        except FileNotFoundError:
            break
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in found:
            os.close(descriptor)
        else:
            found[status.st_dev, status.st_ino] = descriptor
    return list(found.values())[::-1]
