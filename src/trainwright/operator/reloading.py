"""The plugins in force: loaded at the start, and again when a file of their directory comes, changes or goes.

In: a `Registry`. Out: a framework to begin with, and a new one for each change; a log line and a figure for whatever
is broken. A framework is a value that is swapped as a whole. The directory is looked into in a thread, for a file
may do anything while it is imported; the loop only ever sees the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from trainwright.clock import Clock, happens_within
from trainwright.operator.figures.metrics import OperatorMetrics
from trainwright.pipeline import Framework
from trainwright.plugins.found import Broken
from trainwright.plugins.registry import Loaded, Registry

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SLOW_SECONDS = 30.0


class Reloading:
    def __init__(self, registry: Registry, metrics: OperatorMetrics, clock: Clock) -> None:
        self._registry = registry
        self._metrics = metrics
        self._clock = clock
        self._told: frozenset[Broken] = frozenset()
        self._digest = ""

    def load(self) -> Framework:
        """The plugins to begin with; raises `PluginUnusable` for a choice or an entry point that cannot be used."""
        loaded = self._registry.load()
        loaded.require_installed()
        for name in loaded.missing:
            log.warning("there is no plugin %s, which the configuration names; a file may bring it", name)
        self._tell(loaded)
        self._digest = loaded.framework.digest
        return loaded.framework

    async def run(self, use: Callable[[Framework], None]) -> None:
        """Until cancelled: `use` gets every framework that differs from the one before."""
        while self._registry.has_directory:
            await self._clock.sleep(LOOK_SECONDS)
            loaded = await self._look()
            if loaded is None:
                continue
            self._tell(loaded)
            if loaded.framework.digest != self._digest:
                self._digest = loaded.framework.digest
                log.info("plugins: %s", ", ".join(plugin.name for plugin in loaded.framework.plugins))
                use(loaded.framework)

    async def _look(self) -> Loaded | None:
        looking = asyncio.ensure_future(asyncio.to_thread(self._registry.look))
        if not await happens_within(self._clock, SLOW_SECONDS, looking):
            log.error(
                "plugin file %s is still being imported; until then plugins stay as they are", self._registry.busy
            )
        return await looking

    def _tell(self, loaded: Loaded) -> None:
        broken = frozenset(loaded.broken)
        for fault in sorted(broken - self._told, key=lambda it: it.where):
            log.error("plugin file %s: %s", fault.where, fault.why)
        self._told = broken
        self._metrics.plugins(len(loaded.framework.plugins), [fault.name for fault in loaded.broken])
