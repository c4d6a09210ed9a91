"""Every example runs as its README says, and prints what it promises.

`make test` runs the plain one; `make test-examples` installs JAX, XGBoost and MPI beside PyTorch and runs all of them
but DeepSpeed's, which `make test-long` runs: it compiles a part of itself first.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import trainwright as trainwright_package
from commandline import command_line

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL = os.environ.get("TRAINWRIGHT_EXAMPLES") == "1"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/expected.txt"))
PYTHON = Path(os.environ.get("TRAINWRIGHT_EXAMPLES_PYTHON", sys.executable))
"""Has the frameworks that the examples import, where they need one that is not among the tools; and what Trainwright
needs."""
ITS_OWN = ("jax", "xgboost", "mpi", "deepspeed")
"""Examples that run with that Python, as if its environment were the active one."""


def commands_of(example: Path) -> list[list[str]]:
    """The arguments of `trainwright` in each such line of the README."""
    found = re.findall(r"^    trainwright (.*)$", (example / "README.md").read_text(), re.MULTILINE)
    assert found, f"{example}: its README has no command"
    return [shlex.split(line) for line in found]


COMMANDS = [
    pytest.param(folder, words, id=f"{folder.name}: {Path(words[1]).name}")
    for folder in FOLDERS
    for words in commands_of(folder)
]


def has(module: str) -> bool:
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("example", "words"), COMMANDS)
def test_an_example_prints_what_it_promises(example: Path, words: list[str], tmp_path: Path) -> None:
    if not ALL and example.name != "plain":
        pytest.skip("make test-examples runs it")
    if example.name == "deepspeed" and not has("deepspeed"):
        pytest.skip("make test-long installs DeepSpeed and runs it")
    environment = dict(os.environ)
    with command_line(tmp_path / "state") as trainwright:
        command = trainwright.command(*words)
        if example.name in ITS_OWN:
            bin = PYTHON.parent
            environment |= {"VIRTUAL_ENV": str(bin.parent), "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
            environment["PYTHONPATH"] = str(Path(trainwright_package.__file__).parents[1])
            command[0] = str(PYTHON)
        done = subprocess.run(
            command, cwd=EXAMPLES.parent, env=environment, capture_output=True, text=True, timeout=280, check=False
        )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    missing = [line for line in (example / "expected.txt").read_text().splitlines() if line not in said]
    assert not missing, said


def test_every_example_is_listed_and_says_how_to_run_it() -> None:
    page = (EXAMPLES / "README.md").read_text()
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert all(f"({folder.name}/README.md)" in page for folder in folders)
    assert all((folder / "README.md").exists() for folder in folders)


@pytest.mark.parametrize("example", ["deepspeed", "initializer", "mpi"])
def test_the_trainjob_of_an_example_has_its_script_as_it_is(example: str) -> None:
    documents = yaml.safe_load_all((EXAMPLES / example / "trainjob.yaml").read_text())
    job = next(document for document in documents if document["kind"] == "TrainJob")
    assert job["spec"]["trainer"]["args"] == [(EXAMPLES / example / "train.py").read_text()]
