"""What a search for plugins brings: plugins that can run, and what is broken.

Three places are searched, in this order: the table of built-in plugins, entry points of installed packages, files of a
directory. `Found` says of each plugin where it is from and what it is made of; `Broken` names what cannot be used, and
why. `make_plugin` is the one way from a class to a plugin, so that the same things are refused wherever it is from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import msgspec

from trainwright.pipeline.errors import PluginUnusable
from trainwright.pipeline.framework import EXTENSION_POINTS, Plugin

Factory = Callable[[], Plugin]


class Place(enum.Enum):
    """Where a plugin is from."""

    BUILT_IN = "built-in"
    ENTRY_POINT = "entry point"
    FILE = "file"


class Found(msgspec.Struct, frozen=True):
    """A plugin that can run, whether or not the configuration wants it."""

    plugin: Plugin
    place: Place
    where: str = ""
    """The entry point with its distribution, or the file's path."""
    content: str = ""
    """What it is made of, as one text: it changes when the plugin does. Empty for a built-in plugin."""

    @property
    def name(self) -> str:
        return self.plugin.name


class Broken(msgspec.Struct, frozen=True):
    """An entry point or a file that no plugin comes from; of a file that changed, the version before may still run."""

    name: str
    place: Place
    where: str
    why: str


def make_plugin(what: str, factory: Factory) -> Plugin:
    """Call what an entry point or a file names; `PluginUnusable` says of `what` why no plugin came of it."""
    try:
        plugin = factory()
        name = getattr(plugin, "name", None)
        points = [point for point, protocol in EXTENSION_POINTS.items() if isinstance(plugin, protocol)]
    except (Exception, SystemExit) as error:  # the call into a plugin
        raise PluginUnusable(what, f"it cannot be made: {text_of(error)}") from error
    if not isinstance(name, str) or not name or not points:
        raise PluginUnusable(what, "it has no name, or none of the methods of an extension point")
    return plugin


def text_of(error: BaseException) -> str:
    """An error of somebody else's code in one line: `KeyError: 'what'`."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
