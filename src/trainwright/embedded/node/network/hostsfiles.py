"""The /etc/hosts files of this node's pods, kept up to date while pods come and go.

In: the names of a domain's pods, the directories of those that have a file, and the aliases that each pod's own spec
asks for (`hostAliases`). Out: the files, written in place, because they are bound over /etc/hosts in running
containers. One writer at a time, and it remembers what it wrote, so that no file is read or written when nothing has
changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from trainwright.embedded.node.network.addresses import PodName, hosts_file
from trainwright.embedded.node.pods.directories import PodDirectories
from trainwright.embedded.node.pods.record import PodDirectory

WITHOUT_ONE = "127.0.0.1\tlocalhost\n"


class HostsFiles:
    """`services` are names with their addresses, for every pod."""

    def __init__(self, directories: PodDirectories, services: Mapping[str, str]) -> None:
        self._directories = directories
        self._services = services
        self._machine = Machine()
        self._written: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def update(
        self,
        names: Callable[[], Iterable[PodName]],
        pods: Callable[[], Iterable[tuple[PodDirectory, Mapping[str, str]]]],
    ) -> None:
        """Brings the files of these pods up to date. Both functions are called when it is this call's turn to write, so
        that a call which had to wait writes the current names.
        """
        async with self._lock:
            shared = hosts_file(names(), self._services, self._machine.text())
            wanted = [(directory, _with_aliases(shared, aliases)) for directory, aliases in pods()]
            outdated = [(directory, text) for directory, text in wanted if self._written.get(directory.uid) != text]
            if outdated:
                self._written.update(await self._directories.in_thread(_write_all, outdated))

    async def forget(self, uid: str) -> None:
        """Call it before the pod's directory is removed: afterwards nothing is written there any more."""
        async with self._lock:
            self._written.pop(uid, None)


class Machine:
    """The machine's own file, read again when it has changed."""

    def __init__(self, path: Path = Path("/etc/hosts")) -> None:
        self._path = path
        self._version: tuple[int, int] | None = None
        self._text = WITHOUT_ONE

    def text(self) -> str:
        try:
            found = self._path.stat()
            if (found.st_mtime_ns, found.st_size) != self._version:
                self._text = self._path.read_text(errors="replace")
                self._version = found.st_mtime_ns, found.st_size
        except FileNotFoundError:
            self._version = None
            return WITHOUT_ONE
        return self._text


def _with_aliases(shared: str, aliases: Mapping[str, str]) -> str:
    """The text that a domain's pods share, with what one pod's own spec adds at its end."""
    return "\n".join([shared, *(f"{address}\t{name}" for name, address in aliases.items()), ""]) if aliases else shared


def _write_all(files: Iterable[tuple[PodDirectory, str]]) -> dict[str, str]:
    """Writes the file of each directory that is there, and says which those are, by uid."""
    written = {}
    for directory, text in files:
        if not directory.path.exists():
            continue
        path = directory.hosts
        with open(path, "r+" if path.exists() else "w") as file:
            file.write(text)
            file.truncate()
        written[directory.uid] = text
    return written
