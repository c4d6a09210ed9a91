"""The working directory as a tar.gz that fits into a ConfigMap.

In: a directory. Out: an `Archive`, or a `Failure` that says what is too large and which ways out there are. The same
files give the same bytes. Regular files, directories and symbolic links go in; sockets, pipes and devices do not.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from trainwright.cli.failure import Failure
from trainwright.cli.launch.ignoring import Ignoring

LARGEST = 1024 * 1024 - 1024
"""A ConfigMap holds 1 MiB."""
MOST_FILES = 20_000
BLOCK = 256 * 1024


class Archive(msgspec.Struct, frozen=True):
    content: bytes
    files: int

    def __str__(self) -> str:
        return f"{self.files} file{'' if self.files == 1 else 's'}, {size_of(len(self.content))} packed"


def pack(workdir: Path) -> Archive:
    """The directory, without what is ignored."""
    entries = sorted(_entries(workdir, Ignoring(workdir)))
    if len(entries) > MOST_FILES:
        raise _too_large(workdir, entries, f"has more than {MOST_FILES:,} files")
    out = _Bounded(LARGEST)
    try:
        with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            for name in entries:
                _add(tar, workdir, name)
    except _Full:
        raise _too_large(workdir, entries, f"is larger than {size_of(LARGEST)} when it is packed") from None
    except OSError as error:
        raise Failure(f"cannot read {error.filename or workdir}: {error.strerror}") from error
    return Archive(out.getvalue(), len(entries))


def _entries(workdir: Path, ignoring: Ignoring) -> Iterator[str]:
    """Relative paths of what goes in. Directories are listed only when they are empty: files bring their own."""
    waiting = [workdir]
    count = 0
    while waiting:
        folder = waiting.pop()
        try:
            found = list(os.scandir(folder))
        except OSError as error:
            raise Failure(
                f"cannot read {folder}: {error.strerror}; leave it out with a line in .trainwrightignore"
            ) from (error)
        kept = 0
        for entry in found:
            is_directory = entry.is_dir(follow_symlinks=False)
            path = Path(entry.path)
            if ignoring.leaves_out(path, is_directory=is_directory):
                continue
            kept += 1
            if is_directory:
                waiting.append(path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield path.relative_to(workdir).as_posix()
                count += 1
                if count > MOST_FILES:
                    return
        if not kept and folder != workdir:
            yield folder.relative_to(workdir).as_posix()


def _add(tar: tarfile.TarFile, workdir: Path, name: str) -> None:
    path = workdir / name
    info = tar.gettarinfo(path, arcname=name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    if not info.isreg():
        tar.addfile(info)
        return
    with path.open("rb") as file:
        tar.addfile(info, file)


class _Full(Exception):
    """The archive has become too large."""


class _Bounded(io.BytesIO):
    """Memory that refuses to hold more than `limit` bytes, so that a large directory is not packed to its end."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, data: object, /) -> int:
        written = super().write(data)  # type: ignore[arg-type]
        if self.tell() > self._limit:
            raise _Full
        return written


def _too_large(workdir: Path, entries: list[str], how: str) -> Failure:
    sizes = sorted(((_size(workdir / name), name) for name in entries), reverse=True)[:3]
    listed = ", ".join(f"{name} ({size_of(size)})" for size, name in sizes)
    return Failure(
        f"the working directory {workdir} {how}, too large to travel in a ConfigMap. Largest: {listed}.\n"
        "Leave out what training does not need with a line in .trainwrightignore, then either\n"
        "  - build an image with the code and run it with: --image IMAGE --workdir none, or\n"
        "  - put the data into a bucket or a volume of the cluster and read it from there"
    )


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def size_of(count: int) -> str:
    """A number of bytes for people."""
    if count < 1000:
        return f"{count} bytes"
    for unit in ("kB", "MB", "GB"):
        count_in_unit = count / 1000
        if count_in_unit < 1000 or unit == "GB":
            return f"{count_in_unit:.1f} {unit}"
        count = int(count_in_unit)
    raise AssertionError("unreachable")
