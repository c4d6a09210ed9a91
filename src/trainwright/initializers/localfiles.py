"""`file://`: a file or a directory of this machine or of a mounted volume, copied.

Links in the source are followed, as `cp -L` does: what the initializer may read, it may copy, and a Hugging Face
snapshot is made of links. A directory is entered once, however many links lead there. Pipes, sockets and devices
are refused.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

from trainwright.initializers.digests import Digest
from trainwright.initializers.errors import (
    Changed,
    InitializerError,
    Misconfigured,
    Missing,
    NotPermitted,
    UnsafeName,
)
from trainwright.initializers.names import printable
from trainwright.initializers.source import Item, is_ignored

_READ = 2**20


class LocalFiles:
    """Files below a path, or the file at it."""

    is_cached = False

    def __init__(self, uri: str, target: Path, ignore: tuple[str, ...]) -> None:
        self.uri = printable(uri)
        host, slash, path = uri.removeprefix("file://").partition("/")
        if host not in ("", "localhost") or not slash or "%00" in path or "\0" in path:
            raise Misconfigured(f"{self.uri}: after file:// comes an absolute path, as in file:///data/train")
        self._root = Path(os.fsdecode(unquote_to_bytes(f"/{path}")))
        self._ignore = ignore
        here, there = self._root.resolve(), target.resolve()
        if here == there or here in there.parents:
            raise Misconfigured(f"{self.uri}: the target {there} is the source, or inside of it: choose another target")

    async def items(self) -> list[Item]:
        return await asyncio.to_thread(lambda: list(self._items()))

    async def read(self, item: Item, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        assert end is not None
        descriptor = self._open(item)
        try:
            while start < end:
                data = await asyncio.to_thread(os.pread, descriptor, min(_READ, end - start), start)
                if not data:
                    raise Changed(f"{printable(item.location)} became shorter while it was copied")
                yield data
                start += len(data)
            if _identity(item.location, os.fstat(descriptor)) != item.identity:
                raise Changed(f"{printable(item.location)} changed while it was copied")
        finally:
            os.close(descriptor)

    async def digest(self, item: Item) -> Digest | None:
        return None

    def _items(self) -> Iterator[Item]:
        try:
            found = self._root.stat()
        except OSError as error:
            raise _sentence(error, self._root) from error
        if not stat.S_ISDIR(found.st_mode):
            yield from self._item(self._root.name, self._root, found)
            return
        entered = {(found.st_dev, found.st_ino)}
        directories = [("", self._root)]
        while directories:
            above, directory = directories.pop()
            for name in sorted(self._names(directory)):
                path = directory / name
                try:
                    found = path.stat()
                except OSError as error:
                    raise _sentence(error, path) from error
                if not stat.S_ISDIR(found.st_mode):
                    yield from self._item(f"{above}{name}", path, found)
                elif (found.st_dev, found.st_ino) not in entered:
                    entered.add((found.st_dev, found.st_ino))
                    directories.append((f"{above}{name}/", path))

    def _names(self, directory: Path) -> list[str]:
        try:
            return os.listdir(directory)
        except OSError as error:
            raise _sentence(error, directory) from error

    def _item(self, name: str, path: Path, found: os.stat_result) -> Iterator[Item]:
        if is_ignored(name, self._ignore):
            return
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeName(
                f"{printable(str(path))} is neither a file nor a directory: leave it out by IGNORE_PATTERNS"
            )
        yield Item(name, found.st_size, _identity(str(path), found), str(path))

    def _open(self, item: Item) -> int:
        try:
            descriptor = os.open(item.location, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise _sentence(error, Path(item.location)) from error
        if _identity(item.location, os.fstat(descriptor)) != item.identity:
            os.close(descriptor)
            raise Changed(f"{printable(item.location)} changed since it was listed")
        return descriptor


def _identity(path: str, found: os.stat_result) -> str:
    return f"file {path} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"


def _sentence(error: OSError, path: Path) -> InitializerError:
    where = printable(str(path))
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Missing(f"{where}: there is no such file or directory: check the path, and that its volume is mounted")
    if isinstance(error, PermissionError):
        return NotPermitted(f"{where}: the initializer may not read it: see the file's owner and mode")
    return InitializerError(f"{where}: {error.strerror}")
