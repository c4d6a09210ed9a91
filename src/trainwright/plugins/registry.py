"""Which plugins run, and in which order.

The built-in ones are a table: its order is the order inside every phase, on every start. After them come installed
ones (`installed`) by the name of their entry point, then those of the directory (`directory`) by the name of their
file. Each of them is on, and the configuration has the last word:

    disabledPlugins   these are off; `*` is all that `enabledPlugins` does not name
    enabledPlugins    these are on, in this order; `*` stands for all others, and when it is missing they come first

`load` is for who needs the framework once. The operator keeps a `Registry`, and asks it now and then whether the
directory says anything new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from trainwright.pipeline.errors import PluginUnusable
from trainwright.pipeline.framework import Framework, Plugin
from trainwright.plugins.coscheduling import CoScheduling
from trainwright.plugins.directory import Directory
from trainwright.plugins.flux import Flux
from trainwright.plugins.found import Broken, Factory, Found, Place
from trainwright.plugins.installed import given, installed
from trainwright.plugins.jax import JAX
from trainwright.plugins.jobset import JobSet
from trainwright.plugins.kubernetesgang import KubernetesGang
from trainwright.plugins.localruns import LocalRuns
from trainwright.plugins.mpi import MPI
from trainwright.plugins.plainml import PlainML
from trainwright.plugins.progress import TrainJobStatus
from trainwright.plugins.tensorflow import TensorFlow
from trainwright.plugins.torch import Torch
from trainwright.plugins.volcano import Volcano
from trainwright.plugins.xgboost import XGBoost

PROGRESS = TrainJobStatus.name
DIGEST_LENGTH = 16

BUILT_IN: tuple[Callable[[], Plugin], ...] = (
    PlainML,
    Torch,
    MPI,
    JAX,
    XGBoost,
    TensorFlow,
    Flux,
    CoScheduling,
    Volcano,
    JobSet,
)


class Loaded(msgspec.Struct, frozen=True):
    """All plugins at one moment. Another moment's is another value: a build never sees two."""

    framework: Framework
    found: tuple[Found, ...]
    """What could run, in the order of search; the framework has what the configuration chose."""
    broken: tuple[Broken, ...]
    missing: tuple[str, ...]
    """Names in the configuration that no plugin has: a file may bring them later."""

    def require_installed(self) -> None:
        """Raise `PluginUnusable` for an entry point that is broken: who installs a plugin means to have it."""
        for fault in self.broken:
            if fault.place is Place.ENTRY_POINT:
                raise PluginUnusable(fault.name, fault.why)


class Registry:
    """The plugins of one configuration.

    `progress_server` is the progress server's `https://host:port`; empty leaves progress reporting out.
    `kubernetes_gang` is the feature gate of Kubernetes' own gang scheduling. `local_runs`
    is for the local cluster, whose node keeps runs. `directory` is a path; empty for none. `discovered` replaces the
    search for entry points.
    """

    def __init__(
        self,
        *,
        enabled: Sequence[str] = (),
        disabled: Sequence[str] = (),
        progress_server: str = "",
        kubernetes_gang: bool = False,
        local_runs: bool = False,
        directory: str = "",
        discovered: Mapping[str, Factory] | None = None,
    ) -> None:
        self._enabled = enabled
        self._disabled = disabled
        self._fixed: dict[str, Found] = {}
        self._broken: list[Broken] = []
        self._add(Found(make(), Place.BUILT_IN) for make in BUILT_IN)
        self._add([Found(KubernetesGang(is_on=kubernetes_gang), Place.BUILT_IN)])
        if progress_server:
            self._add([Found(TrainJobStatus(progress_server), Place.BUILT_IN)])
        if local_runs:
            self._add([Found(LocalRuns(), Place.BUILT_IN)])
        self._add(installed() if discovered is None else given(discovered))
        taken = {found.name: f"{found.place.value} {found.where}".strip() for found in self._fixed.values()}
        self._directory = Directory(Path(directory), taken) if directory else None

    @property
    def has_directory(self) -> bool:
        return self._directory is not None

    @property
    def busy(self) -> str:
        """The file that is being imported at this moment."""
        return self._directory.busy if self._directory is not None else ""

    def load(self) -> Loaded:
        """All plugins as they are now; raises `PluginUnusable` for a choice that cannot be made."""
        if self._directory is not None:
            self._directory.look()
        return self._loaded()

    def look(self) -> Loaded | None:
        """All plugins, if the directory says anything new since the last look."""
        return self._loaded() if self._directory is not None and self._directory.look() else None

    def _add(self, results: Iterable[Found | Broken]) -> None:
        for result in results:
            if isinstance(result, Broken):
                self._broken.append(result)
            elif result.name in self._fixed:
                why = f"it takes the name of another plugin, {result.name} ({self._fixed[result.name].place.value})"
                name = result.where.partition(" ")[0]
                self._broken.append(Broken(name, result.place, result.where, why))
            else:
                self._fixed[result.name] = result

    def _loaded(self) -> Loaded:
        by_name = dict(self._fixed)
        broken = list(self._broken)
        if self._directory is not None:
            by_name.update({found.name: found for found in self._directory.found})
            broken += self._directory.broken
        chosen, missing = self._choose(by_name)
        outside = [found.name for found in chosen if found.place is not Place.BUILT_IN]
        framework = Framework([found.plugin for found in chosen], digest=_digest(chosen), outside=outside)
        return Loaded(framework, tuple(by_name.values()), tuple(broken), missing)

    def _choose(self, by_name: Mapping[str, Found]) -> tuple[list[Found], tuple[str, ...]]:
        """The plugins that the configuration wants, in order, and the names in it that nobody has."""
        enabled, disabled = self._enabled, self._disabled
        missing: list[str] = []
        for name in (*enabled, *disabled):
            if name == "*":
                continue
            if name in enabled and name in disabled:
                raise PluginUnusable(name, "it is both in enabledPlugins and in disabledPlugins")
            if name in by_name or (name == PROGRESS and name in disabled):
                continue
            if name == PROGRESS:
                raise PluginUnusable(name, "it needs the feature gate TrainJobStatus=true")
            if self._directory is None:
                raise PluginUnusable(name, f"there is no such plugin; there are {', '.join(by_name)}")
            missing.append(name)
        others = [name for name in by_name if name not in enabled and name not in disabled and "*" not in disabled]
        order: list[str] = []
        for name in enabled if "*" in enabled else ("*", *enabled):
            order += others if name == "*" else [name]
        return [by_name[name] for name in dict.fromkeys(order) if name in by_name], tuple(missing)


def load(
    *,
    enabled: Sequence[str] = (),
    disabled: Sequence[str] = (),
    progress_server: str = "",
    kubernetes_gang: bool = False,
    local_runs: bool = False,
    directory: str = "",
    discovered: Mapping[str, Factory] | None = None,
) -> Framework:
    """The framework of one configuration; raises `PluginUnusable`. The arguments are those of `Registry`."""
    registry = Registry(
        enabled=enabled,
        disabled=disabled,
        progress_server=progress_server,
        kubernetes_gang=kubernetes_gang,
        local_runs=local_runs,
        directory=directory,
        discovered=discovered,
    )
    loaded = registry.load()
    loaded.require_installed()
    return loaded.framework


def _digest(chosen: Iterable[Found]) -> str:
    """One word for the plugins that do not ship with Trainwright and their order; empty when there are none."""
    lines = [f"{found.name}\n{found.content}\n" for found in chosen if found.content]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:DIGEST_LENGTH] if lines else ""
