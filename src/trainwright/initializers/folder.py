"""A directory held open: every operation is relative to it, and no symbolic link is followed on the way.

What somebody else puts into the directory meanwhile, or has put there before, cannot lead a write elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from trainwright.initializers.errors import InitializerError, Misconfigured, NoSpace, UnsafeName
from trainwright.initializers.names import printable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Folder:
    """An open directory. `path` is for messages only."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self.path = path

    @classmethod
    def at(cls, path: Path, mode: int = 0o777) -> Folder:
        """Opens a directory, made where it is missing. Symbolic links in its path are followed: the user gave it."""
        try:
            path.mkdir(mode=mode, parents=True, exist_ok=True)
            return cls(os.open(path, _DIRECTORY), path)
        except OSError as error:
            raise failure(error, path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def folder(self, name: str) -> Folder:
        """The directory `name` in this one, made if it is missing. A link in its place is refused."""
        path = self.path / name
        try:
            os.mkdir(name, dir_fd=self.descriptor)
        except FileExistsError:
            pass
        except OSError as error:
            raise failure(error, path) from error
        try:
            return Folder(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.descriptor), path)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise UnsafeName(
                    f"{printable(str(path))} is in the way: it is a symbolic link or a file, and a directory is "
                    f"needed there. Remove it, or choose another target"
                ) from error
            raise failure(error, path) from error

    def existing(self, name: str) -> Folder | None:
        """The directory `name` in this one; None when there is none."""
        try:
            return Folder(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.descriptor), self.path / name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise failure(error, self.path / name) from error

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.descriptor)
        except OSError as error:
            raise failure(error, self.path / name) from error

    def stat(self, name: str) -> os.stat_result | None:
        """The regular file `name`; None when there is none."""
        try:
            found = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise failure(error, self.path / name) from error
        return found if stat.S_ISREG(found.st_mode) else None

    def move(self, name: str, to: Folder, new: str) -> None:
        """Put a file where it belongs, in one step, in place of what was there."""
        try:
            os.rename(name, new, src_dir_fd=self.descriptor, dst_dir_fd=to.descriptor)
        except OSError as error:
            raise failure(error, to.path / new) from error

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise failure(error, self.path / name) from error

    def names(self) -> Iterator[str]:
        yield from os.listdir(self.descriptor)

    def sync(self) -> None:
        """Wait until the names in this directory are on disk, where the file system can do that for a directory."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise failure(error, self.path) from error

    def free(self) -> int:
        """How many bytes may still be written here."""
        room = os.fstatvfs(self.descriptor)
        return room.f_bavail * room.f_frsize

    def device(self) -> int:
        return os.fstat(self.descriptor).st_dev


def failure(error: OSError, path: Path | str) -> InitializerError:
    """What an error of the file system means to the user."""
    where = printable(str(path))
    if error.errno in _FULL:
        return NoSpace(
            f"{where}: {error.strerror}. Free some space or ask for a larger volume; what was fetched is kept"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Misconfigured(
            f"{where}: {error.strerror}. The initializer needs to write there: see the volume's rights"
        )
    return InitializerError(f"{where}: {error.strerror}")
