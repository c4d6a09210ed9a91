"""`trainwright plugins`: the plugins there are, with where each is from, its place in the order and what it does.

Needs no cluster: it reads what the operator would read with the same configuration. A broken plugin is listed with
the reason, and the exit code is 1.
"""

from __future__ import annotations

import json

import msgspec

from trainwright.cli.console.terminal import Terminal
from trainwright.cli.files.configured import plugins_of
from trainwright.plugins.found import Place
from trainwright.plugins.listing import BROKEN, Row, rows_of


def plugins(config: str | None, feature_gates: str | None, output: str) -> int:
    rows = list(rows_of(plugins_of(config, feature_gates)))
    if output == "json":
        print(json.dumps(msgspec.to_builtins(rows), indent=2))
    else:
        _show(rows)
    return 1 if any(row.state == BROKEN for row in rows) else 0


def _show(rows: list[Row]) -> None:
    cells = []
    for row in rows:
        place = row.where if row.origin == Place.FILE.value else f"{row.origin} {row.where}".rstrip()
        watches = ", ".join(f"{it.resource} (workload)" if it.workload else it.resource for it in row.watches)
        state = f"{row.state}: {row.why}" if row.why else row.state
        cells.append((str(row.order or "-"), row.name, place, ", ".join(row.points) or "-", watches or "-", state))
    Terminal().table(("ORDER", "NAME", "FROM", "POINTS", "WATCHES", "STATE"), cells)
