"""Plugins in a directory, such as a mounted ConfigMap: every visible `*.py` file directly in it.

A `Directory` is looked into again and again. A look costs one stat for each file until a stat differs; then contents
are read, and what has another digest than before is run. A file that cannot be used is named with the reason, and the
last version of it that could be used goes on; a file that is gone takes its plugins with it. A directory that cannot
be read changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainwright.pipeline.errors import PluginUnusable
from trainwright.plugins.found import Broken, Found, Place
from trainwright.plugins.pluginfile import PluginFile, digest_of, load, read, unload

Stamp = tuple[int, ...]
SUFFIX = ".py"


class Directory:
    """The files of `path`. `taken` has the names of plugins from elsewhere, each with where its plugin is from."""

    def __init__(self, path: Path, taken: Mapping[str, str]) -> None:
        self.path = path
        self.broken: tuple[Broken, ...] = ()
        self.busy = ""  # the file that is being imported at this moment
        self._taken = taken
        self._files: dict[str, PluginFile] = {}  # in order of their names
        self._refused: dict[str, tuple[str, str]] = {}  # file → digest of a content that cannot be used, and why
        self._stamps: dict[str, Stamp] | None = None
        self._is_settled = False

    @property
    def found(self) -> Iterator[Found]:
        for file in self._files.values():
            for plugin in file.plugins:
                yield Found(plugin, Place.FILE, str(self.path / file.name), file.digest)

    def look(self) -> bool:
        """Read what may have changed. Whether there is anything new to say: other plugins, or other faults."""
        before = self._summary()
        try:
            stamps = _stamps(self.path)
        except OSError as error:
            self._stamps = None
            self.broken = (self._fault(self.path, f"the directory cannot be read: {error.strerror}"),)
            return self._summary() != before
        # A write within one tick of the file system's clock may leave a stamp as it was. So contents are read until a
        # stamp has been the same at two looks: any later write gives another one.
        if stamps == self._stamps and self._is_settled:
            return False
        self._is_settled = stamps == self._stamps
        self._stamps = stamps
        self._read(sorted(stamps))
        return self._summary() != before

    def _read(self, names: list[str]) -> None:
        taken = dict(self._taken)
        files: dict[str, PluginFile] = {}
        broken: list[Broken] = []
        for name in names:
            last = self._files.get(name)
            file: PluginFile | None = None
            try:
                file = self._newest(self.path / name, last)
                _check_names(file, taken)
            except PluginUnusable as error:
                if file is not None and file is not last:
                    unload(file)
                file = last if last is not None and _is_free(last, taken) else None
                after = "; the last version that could be used goes on" if file is not None else ""
                broken.append(self._fault(self.path / name, f"{error.cause}{after}"))
            if file is not None:
                files[name] = file
                taken.update({plugin.name: f"file {name}" for plugin in file.plugins})
        for name, file in self._files.items():
            if files.get(name) is not file:
                unload(file)
        self._files, self.broken = files, tuple(broken)
        self._refused = {name: fault for name, fault in self._refused.items() if name in names}

    def _newest(self, path: Path, last: PluginFile | None) -> PluginFile:
        """The file as it is now; `last` itself when its content is the same."""
        source = read(path, self.path)
        digest = digest_of(source)
        if last is not None and last.digest == digest:
            return last
        refused, why = self._refused.get(path.name, ("", ""))
        if refused == digest:
            raise PluginUnusable(path.name, why)  # running it again would do no good
        self.busy = str(path)
        try:
            return load(path, source)
        except PluginUnusable as error:
            self._refused[path.name] = (digest, error.cause)
            raise
        finally:
            self.busy = ""

    def _fault(self, path: Path, why: str) -> Broken:
        return Broken(path.name, Place.FILE, str(path), why)

    def _summary(self) -> object:
        return [(file.name, file.digest) for file in self._files.values()], self.broken


def _stamps(path: Path) -> dict[str, Stamp]:
    """Every file that may hold plugins, with what a stat tells of it; a link to nothing has an empty stamp."""
    with os.scandir(path) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and not entry.name.startswith(".")]
    stamps: dict[str, Stamp] = {}
    for name in names:
        try:
            about = os.stat(path / name)
        except OSError:
            stamps[name] = ()
        else:
            stamps[name] = (
                about.st_dev,
                about.st_ino,
                about.st_mode,
                about.st_uid,
                about.st_size,
                about.st_mtime_ns,
                about.st_ctime_ns,
            )
    return stamps


def _check_names(file: PluginFile, taken: Mapping[str, str]) -> None:
    for plugin in file.plugins:
        if plugin.name in taken:
            raise PluginUnusable(file.name, f"the name {plugin.name} is taken ({taken[plugin.name]})")


def _is_free(file: PluginFile, taken: Mapping[str, str]) -> bool:
    return not any(plugin.name in taken for plugin in file.plugins)
