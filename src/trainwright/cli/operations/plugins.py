"""`trainwright plugins`: the plugins there are, with where each is from, its place in the order and what it does.

Needs no cluster: it reads what the operator would read with the same configuration. A broken plugin is listed with
the reason, and the exit code is 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from trainwright.cli.console.terminal import Terminal
from trainwright.cli.files.configured import plugins_of
from trainwright.pipeline.framework import EXTENSION_POINTS, Framework
from trainwright.plugins.found import Found, Place
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


def plugins(config: str | None, feature_gates: str | None, output: str) -> int:
    rows = list(rows_of(plugins_of(config, feature_gates)))
    if output == "json":
        print(json.dumps(msgspec.to_builtins(rows), indent=2))
    else:
        _show(rows)
    return 1 if any(row.state == BROKEN for row in rows) else 0


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


def _show(rows: list[Row]) -> None:
    cells = []
    for row in rows:
        place = row.where if row.origin == Place.FILE.value else f"{row.origin} {row.where}".rstrip()
        watches = ", ".join(f"{it.resource} (workload)" if it.workload else it.resource for it in row.watches)
        state = f"{row.state}: {row.why}" if row.why else row.state
        cells.append((str(row.order or "-"), row.name, place, ", ".join(row.points) or "-", watches or "-", state))
    Terminal().table(("ORDER", "NAME", "FROM", "POINTS", "WATCHES", "STATE"), cells)
