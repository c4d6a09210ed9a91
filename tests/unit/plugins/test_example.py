"""The example plugins are packaged so that the operator finds them; their own tests stand beside them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from trainwright.plugins.installed import GROUP

EXAMPLES = Path(__file__).parents[3] / "examples" / "plugins"


@pytest.mark.parametrize(("folder", "plugin", "most"), [("spot", "Spot", 45), ("plainjob", "PlainJob", 125)])
def test_an_example_is_about_a_page_and_declares_its_entry_point(folder: str, plugin: str, most: int) -> None:
    module = f"trainwright_{folder}"
    assert len((EXAMPLES / folder / f"{module}.py").read_text().splitlines()) <= most
    project = tomllib.loads((EXAMPLES / folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP] == {folder: f"{module}:{plugin}"}
