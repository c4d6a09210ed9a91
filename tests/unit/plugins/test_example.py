"""The example plugin keeps working: its own tests, run among ours."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

from trainwright.plugins.registry import GROUP

SPOT = Path(__file__).parents[3] / "examples" / "plugins" / "spot"

_spec = importlib.util.spec_from_file_location("example_test_spot", SPOT / "test_spot.py")
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
globals().update({name: value for name, value in vars(_module).items() if name.startswith("test_")})


def test_it_is_a_page_and_declares_its_entry_point() -> None:
    assert len((SPOT / "trainwright_spot.py").read_text().splitlines()) <= 40
    project = tomllib.loads((SPOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP] == {"spot": "trainwright_spot:Spot"}
