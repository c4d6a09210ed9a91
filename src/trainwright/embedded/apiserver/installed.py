"""Which sets of objects are installed already, so that a start need not read and apply them again.

In: a set's name and digest. Out: whether that set was installed and all of its objects are as the installation left
them. The record is one file. If it is lost or wrong, the set is installed again, which changes nothing that is right.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from trainwright.embedded.apiserver.storage.state import State
from trainwright.embedded.apiserver.storage.store import Key


class Installed(msgspec.Struct, frozen=True):
    """An object as it was installed. `revision` is its generation, or its version if it has no generation."""

    key: Key
    uid: str
    revision: str


class InstalledSet(msgspec.Struct, frozen=True):
    digest: str
    objects: list[Installed]


class InstalledSets:
    """The record in `file`. Its methods block: call `read` and `write` in a thread."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, InstalledSet]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, InstalledSet])
        except (OSError, msgspec.MsgspecError):
            return {}

    def write(self, name: str, installed: InstalledSet) -> None:
        scratch = self._file.with_suffix(".new")
        scratch.write_bytes(msgspec.json.encode({**self.read(), name: installed}))
        os.replace(scratch, self._file)


def is_in_place(installed: InstalledSet | None, digest: str, state: State) -> bool:
    if installed is None or installed.digest != digest:
        return False
    return [installed_object(thing.key, state) for thing in installed.objects] == installed.objects


def as_installed(digest: str, keys: Iterable[Key], state: State) -> InstalledSet:
    found = (installed_object(key, state) for key in keys)
    return InstalledSet(digest, [thing for thing in found if thing is not None])


def installed_object(key: Key, state: State) -> Installed | None:
    stored = state.get(key)
    if stored is None or stored.deleting:
        return None
    generation = _read_generation(stored.data).metadata.generation
    return Installed(key, stored.uid, f"generation {generation}" if generation else f"version {stored.version}")


class _Metadata(msgspec.Struct):
    generation: int | None = None


class _Envelope(msgspec.Struct):
    metadata: _Metadata


_read_generation = msgspec.json.Decoder(_Envelope).decode
