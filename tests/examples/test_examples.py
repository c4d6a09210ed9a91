"""Every example runs as its README says, and prints what it promises.

`make test` runs the plain one; `make test-examples` installs JAX and XGBoost beside PyTorch and runs all of them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from commandline import command_line

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL = os.environ.get("TRAINWRIGHT_EXAMPLES") == "1"
RUN = sorted(path.parent for path in EXAMPLES.glob("*/expected.txt"))
PYTHON = Path(os.environ.get("TRAINWRIGHT_EXAMPLES_PYTHON", sys.executable))
"""Has the frameworks that the examples import, where they need one that is not among the tools."""


def command_of(example: Path) -> list[str]:
    """The arguments of `trainwright` in the first such line of the README."""
    found = re.search(r"^    trainwright (.*)$", (example / "README.md").read_text(), re.MULTILINE)
    assert found is not None, f"{example}: its README has no command"
    return shlex.split(found[1])


@pytest.mark.parametrize("example", RUN, ids=lambda path: path.name)
def test_an_example_prints_what_it_promises(example: Path, tmp_path: Path) -> None:
    if not ALL and example.name != "plain":
        pytest.skip("make test-examples runs it")
    words = command_of(example)
    python = ["--python", str(PYTHON)] if example.name in ("jax", "xgboost") else []
    with command_line(tmp_path / "state") as trainwright:
        command = trainwright.command(*words, *python)
        done = subprocess.run(command, cwd=EXAMPLES.parent, capture_output=True, text=True, timeout=240, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    missing = [line for line in (example / "expected.txt").read_text().splitlines() if line not in said]
    assert not missing, said


def test_every_example_is_listed_and_says_how_to_run_it() -> None:
    page = (EXAMPLES / "README.md").read_text()
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert all(f"({folder.name}/README.md)" in page for folder in folders)
    assert all((folder / "README.md").exists() for folder in folders)
