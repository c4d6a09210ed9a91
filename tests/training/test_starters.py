"""What `trainwright init` writes trains as it is, with every framework that is installed here.

`plain` is in tests/embedded/test_manners.py. These take long: with TRAINWRIGHT_STARTERS=1 (`make test-long`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from commandline import COMMAND, CommandLine
from trainwright.cli.commands.files import FRAMEWORKS

pytestmark = pytest.mark.skipif(
    os.environ.get("TRAINWRIGHT_STARTERS") != "1", reason="with TRAINWRIGHT_STARTERS=1: make test-long"
)
LAST = {"plain": "step 3", "xgboost": "train-logloss", "mpi": "of 2 on"}
"""What the last lines of a training say; step 50 where nothing else is said."""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_init_writes_trains(framework: str, trainwright: CommandLine, tmp_path: Path) -> None:
    if framework in ("torch", "jax", "xgboost", "deepspeed") and find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    if framework in ("mpi", "deepspeed") and shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    file = str(tmp_path / "job.yaml")
    subprocess.run([*COMMAND, "init", framework, file], check=True, capture_output=True)
    output = trainwright("run", file, seconds=110)
    assert LAST.get(framework, "step 50") in output
    assert "Complete" in output
