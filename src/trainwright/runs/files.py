"""How the files of runs are written: whole or not at all, on disk at once, by one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows, where one person's commands are not kept apart
    fcntl = None  # type: ignore[assignment]


def write_new(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Writes a file that must not exist yet, readable only by its owner.

    A durable one survives a power cut, which takes some milliseconds.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write_all(handle, data)
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replaces a file: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    write_new(temporary, data, durable=durable)
    os.replace(temporary, path)


def append_line(path: Path, data: bytes) -> None:
    """Appends one line. After a line that a crash cut off, it begins a new one."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(handle).st_size
        os.lseek(handle, max(size - 1, 0), os.SEEK_SET)
        cut_off = size > 0 and os.read(handle, 1) != b"\n"
        _write_all(handle, (b"\n" if cut_off else b"") + data + b"\n")
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file, and waits for it. The kernel releases it when the process dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file now."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
