"""Plugins of installed packages: the entry-point group `trainwright.plugins`.

In: what is installed. Out: a `Found` for each entry point, by its name, or a `Broken` with the reason. Whose content
an installed plugin is made of is told by its distribution's name and version, the entry point's value, and the source
of the module that it names: an editable install changes without its version.
"""

from __future__ import annotations

import glob
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.pipeline.errors import PluginUnusable
from trainwright.plugins.found import Broken, Factory, Found, Place, make_plugin, text_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "trainwright.plugins"


def installed() -> Iterator[Found | Broken]:
    """What the entry points lead to, in the order of their names."""
    if not _is_any_installed():
        return
    from importlib.metadata import entry_points  # costs 60 ms of CPU: only those who have plugins pay

    for point in sorted(entry_points(group=GROUP), key=lambda it: it.name):
        where = _where(point)
        try:
            factory: Factory = point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the call into a plugin: a module may do anything
            yield Broken(point.name, Place.ENTRY_POINT, where, f"{point.value} cannot be imported: {text_of(error)}")
            continue
        yield _found(point.name, factory, where, f"{where}\n{_source_digest(point)}")


def given(factories: Mapping[str, Factory]) -> Iterator[Found | Broken]:
    """Plugins that take the place of installed ones, as tests want them; nobody knows what they are made of."""
    for name, factory in sorted(factories.items()):
        yield _found(name, factory, name, "")


def _found(name: str, factory: Factory, where: str, content: str) -> Found | Broken:
    try:
        return Found(make_plugin(name, factory), Place.ENTRY_POINT, where, content)
    except PluginUnusable as error:
        return Broken(name, Place.ENTRY_POINT, where, error.cause)


def _where(point: EntryPoint) -> str:
    distribution = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"{point.name} = {point.value}{distribution}"


def _source_digest(point: EntryPoint) -> str:
    """The digest of the module's source; empty where there is none to read, as in an archive."""
    try:
        spec = find_spec(point.module)
        return hashlib.sha256(Path((spec and spec.origin) or "").read_bytes()).hexdigest()
    except (OSError, ValueError):  # ValueError: a module that does not say where it is from
        return ""


def _is_any_installed() -> bool:
    """Whether any distribution on the path declares our group, by a look at the files that would say so."""
    pattern = os.path.join("*.*-info", "entry_points.txt")
    for folder in sys.path:
        for name in glob.iglob(pattern, root_dir=folder or "."):
            with open(os.path.join(folder or ".", name), "rb") as file:
                if GROUP.encode() in file.read():
                    return True
    return False
