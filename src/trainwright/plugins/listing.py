"""The plugins as rows: where each is from, its place in the order, what it does, and why one is broken."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trainwright.pipeline.framework import EXTENSION_POINTS, Framework
from trainwright.plugins.found import Found
from trainwright.plugins.registry import Loaded

ON, DISABLED, BROKEN, MISSING = "on", "disabled", "broken", "missing"


class Watched(msgspec.Struct, frozen=True):
    """A kind that a plugin's objects live in."""

    resource: str
    workload: bool


class Row(msgspec.Struct, frozen=True):
    """One plugin, or what should have been one."""

    name: str
    state: str
    origin: str = ""
    where: str = ""
    order: int | None = None
    """Its place among those that are on, from 1."""
    points: tuple[str, ...] = ()
    watches: tuple[Watched, ...] = ()
    why: str = ""


def rows_of(loaded: Loaded) -> Iterator[Row]:
    """Those that are on, in order; then those that are off, broken, or named and not there."""
    found = {it.name: it for it in loaded.found}
    order = [plugin.name for plugin in loaded.framework.plugins]
    for name in (*order, *(name for name in found if name not in order)):
        yield _row(found[name], order)
    for fault in loaded.broken:
        yield Row(fault.name, BROKEN, fault.place.value, fault.where, why=fault.why)
    for name in loaded.missing:
        yield Row(name, MISSING, why="the configuration names it, and no plugin has the name")


def _row(it: Found, order: list[str]) -> Row:
    alone = Framework([it.plugin])  # for its watches, though it be disabled
    failed = alone.unwatchable.get(it.name)
    return Row(
        it.name,
        BROKEN if failed else ON if it.name in order else DISABLED,
        it.place.value,
        it.where,
        order.index(it.name) + 1 if it.name in order else None,
        tuple(point for point, protocol in EXTENSION_POINTS.items() if isinstance(it.plugin, protocol)),
        tuple(Watched(named.watch.resource.group_resource, named.watch.workload) for named in alone.watches),
        str(failed or ""),
    )
