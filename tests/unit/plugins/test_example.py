"""The example plugin is packaged so that the operator finds it; its own tests stand beside it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from trainwright.plugins.installed import GROUP

SPOT = Path(__file__).parents[3] / "examples" / "plugins" / "spot"


def test_it_is_a_page_and_declares_its_entry_point() -> None:
    assert len((SPOT / "trainwright_spot.py").read_text().splitlines()) <= 45
    project = tomllib.loads((SPOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP] == {"spot": "trainwright_spot:Spot"}
