"""Container output on disk, in the line format of Kubernetes' container runtime interface.

In: any bytes that a container wrote. Out: records `2026-01-01T00:00:00.000000000Z stdout F text`, where `F` ends a line
of the container and `P` is a part of one, so that the original bytes can be restored exactly. Invariant: at most
`max_files` files of about `max_bytes` are kept, and the oldest is dropped first. Standard library only: the supervisor
imports this.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from trainwright.api.times import rfc3339_nano

MAX_BYTES = 10 * 1024 * 1024
"""kubelet's containerLogMaxSize."""

MAX_FILES = 5
"""kubelet's containerLogMaxFiles."""

MAX_FILES_OF_A_RUN = 100
"""Of a pod that belongs to a run: a gigabyte of each container, since nobody collects its lines elsewhere."""

MAX_PENDING = 16 * 1024
"""A line longer than this is written in parts (CRI runtimes do the same)."""


class LogFile:
    """The log of one run of a container: `append`s whole records and rotates when the current file is full.

    `0.log` is the current file, `0.log.1` the one before it, and so on: a reader that holds `0.log` open keeps reading
    the same inode after the rotation, and finds the next file by the path.

    A record that cannot be written, because the disk is full for example, is dropped: training must not end for it. The
    next record that can be written is preceded by one that says how much is missing.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.max_files = max_files
        self._fd: int | None = None
        self._size = 0
        self._lost_lines = 0
        self._lost_bytes = 0
        self._why = ""
        try:
            self._open()
        except OSError as error:
            self._why = error.strerror or str(error)

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._fd).st_size
        return self._fd

    def append(self, data: bytes) -> None:
        """Appends records, each with its newline."""
        gap = self._gap() if self._lost_bytes else b""
        try:
            self._write(gap + data)
        except OSError as error:
            self._lost_lines += data.count(b"\n")
            self._lost_bytes += len(data)
            self._why = error.strerror or str(error)
        else:
            self._lost_lines = self._lost_bytes = 0

    def _write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self.max_bytes:
            self._rotate()
        descriptor = self._open() if self._fd is None else self._fd
        before, view = self._size, memoryview(data)
        try:
            while view:
                written = os.write(descriptor, view)
                view = view[written:]
                self._size += written
        except OSError:
            os.ftruncate(descriptor, before)  # no half records
            self._size = before
            raise

    def _gap(self) -> bytes:
        lines = f"{self._lost_lines} line{'' if self._lost_lines == 1 else 's'}"
        said = f"[trainwright: {lines} of output ({self._lost_bytes} bytes) could not be written here: {self._why}]"
        return f"{rfc3339_nano(time.time_ns())} stderr F {said}\n".encode()

    def _rotate(self) -> None:
        self.close()
        for number in range(self.max_files - 1, 0, -1):
            older = rotated(self.path, number - 1)
            if older.exists():
                os.replace(older, rotated(self.path, number))
        self._size = 0
        self._open()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def rotated(path: Path, number: int) -> Path:
    """The `number`th file before the current one; 0 is the current one."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


class OutputStream:
    """One of a container's output streams: cuts its bytes into log records and holds back an unfinished line."""

    def __init__(self, name: str, log: LogFile) -> None:
        self.name = name
        self.log = log
        self._pending = b""

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def feed(self, data: bytes) -> None:
        """Logs what the container wrote, up to its last whole line."""
        lines, newline, rest = (self._pending + data).rpartition(b"\n")
        if newline:
            # One timestamp and one write for all lines of a read make a gigabyte of output cheap.
            full = self._prefix(b"F")
            self.log.append(full + lines.replace(b"\n", b"\n" + full) + b"\n")
        self._pending = rest
        if len(rest) >= MAX_PENDING:
            self.flush()

    def flush(self) -> None:
        """Writes the unfinished line as a part, so that a progress bar or a last line without a newline is seen."""
        if self._pending:
            self.log.append(self._prefix(b"P") + self._pending + b"\n")
            self._pending = b""

    def _prefix(self, tag: bytes) -> bytes:
        return f"{rfc3339_nano(time.time_ns())} {self.name} ".encode() + tag + b" "
