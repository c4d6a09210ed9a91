"""Which plugins run, and in which order.

The built-in ones are a table: its order is the order inside every phase, on every start (D8). Others come from the
entry-point group `trainwright.plugins`; an installed plugin is on, after the built-in ones, by name. The
configuration has the last word:

    disabledPlugins   these are off; `*` is all that `enabledPlugins` does not name
    enabledPlugins    these are on, in this order; `*` stands for all others, and when it is missing they come first
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from trainwright.pipeline.errors import PluginUnusable
from trainwright.pipeline.framework import EXTENSION_POINTS, Framework, Plugin
from trainwright.plugins.coscheduling import CoScheduling
from trainwright.plugins.flux import Flux
from trainwright.plugins.jax import JAX
from trainwright.plugins.jobset import JobSet
from trainwright.plugins.mpi import MPI
from trainwright.plugins.plainml import PlainML
from trainwright.plugins.progress import TrainJobStatus
from trainwright.plugins.torch import Torch
from trainwright.plugins.volcano import Volcano
from trainwright.plugins.xgboost import XGBoost

GROUP = "trainwright.plugins"
PROGRESS = TrainJobStatus.name

BUILT_IN: tuple[Callable[[], Plugin], ...] = (
    PlainML,
    Torch,
    MPI,
    JAX,
    XGBoost,
    Flux,
    CoScheduling,
    Volcano,
    JobSet,
)


def load(
    *,
    enabled: Sequence[str] = (),
    disabled: Sequence[str] = (),
    progress_server: str = "",
    discovered: Mapping[str, Callable[[], Plugin]] | None = None,
) -> Framework:
    """The framework of one configuration; raises `PluginUnusable`.

    `progress_server` is the progress server's `https://host:port`; empty leaves progress reporting out. `discovered`
    replaces the search for entry points.
    """
    plugins: dict[str, Plugin] = {}
    for make in BUILT_IN:
        plugin = make()
        plugins[plugin.name] = plugin
    if progress_server:
        plugins[PROGRESS] = TrainJobStatus(progress_server)
    for name, factory in sorted((discover() if discovered is None else discovered).items()):
        plugin = _make(name, factory)
        if plugin.name in plugins:
            raise PluginUnusable(plugin.name, f"entry point {name!r} takes the name of another plugin")
        plugins[plugin.name] = plugin
    return Framework(_chosen(plugins, enabled, disabled))


def discover() -> dict[str, Callable[[], Plugin]]:
    """Plugins of other packages, by entry-point name."""
    if not _is_any_installed():
        return {}
    from importlib.metadata import entry_points  # costs 60 ms of CPU: only those who have plugins pay

    found: dict[str, Callable[[], Plugin]] = {}
    for point in entry_points(group=GROUP):
        try:
            found[point.name] = point.load()
        except Exception as error:  # the call into a plugin: its module may do anything on import
            raise PluginUnusable(point.name, f"{point.value} cannot be imported: {error}") from error
    return found


def _is_any_installed() -> bool:
    """Whether any distribution on the path declares our group, by a look at the files that would say so."""
    pattern = os.path.join("*.*-info", "entry_points.txt")
    for folder in sys.path:
        for name in glob.iglob(pattern, root_dir=folder or "."):
            with open(os.path.join(folder or ".", name), "rb") as file:
                if GROUP.encode() in file.read():
                    return True
    return False


def _make(name: str, factory: Callable[[], Plugin]) -> Plugin:
    try:
        plugin = factory()
    except Exception as error:  # the call into a plugin
        raise PluginUnusable(name, f"it cannot be made: {error}") from error
    if not isinstance(getattr(plugin, "name", None), str) or not any(isinstance(plugin, p) for p in EXTENSION_POINTS):
        raise PluginUnusable(name, "it has no name, or none of the methods of an extension point")
    return plugin


def _chosen(plugins: dict[str, Plugin], enabled: Sequence[str], disabled: Sequence[str]) -> list[Plugin]:
    for name in (*enabled, *disabled):
        if name != "*" and name not in plugins and not (name == PROGRESS and name not in enabled):
            if name == PROGRESS:
                raise PluginUnusable(name, "it needs the feature gate TrainJobStatus=true")
            raise PluginUnusable(name, f"there is no such plugin; there are {', '.join(plugins)}")
        if name != "*" and name in enabled and name in disabled:
            raise PluginUnusable(name, "it is both in enabledPlugins and in disabledPlugins")
    others = [name for name in plugins if name not in enabled and name not in disabled and "*" not in disabled]
    order: list[str] = []
    for name in enabled if "*" in enabled else ("*", *enabled):
        order += others if name == "*" else [name]
    return [plugins[name] for name in dict.fromkeys(order)]
