"""Programs in `scripts/` under the frameworks of `make test-training`, and what their ranks report at the end."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from commandline import CommandLine

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
SECONDS = 300.0

_RESULT = re.compile(r"RESULT rank=(\d+) world=(\d+) host=(\S+) first=([\d.]+) last=([\d.]+) weights=(\w+)")


class Result(NamedTuple):
    """What one rank has printed."""

    rank: int
    world: int
    host: str
    first: float
    last: float
    weights: str


def environment(name: str) -> dict[str, str]:
    """The variables of whoever has activated the environment `.venv-NAME`, or of the tests' own where it is empty."""
    prefix = ROOT / f".venv-{name}" if name else Path(sys.executable).parent.parent
    if "TRAINWRIGHT_TRAINING" not in os.environ or not (prefix / "bin" / "python").exists():
        pytest.skip("`make test-training` and `make test-long` install this framework and run this test")
    path = f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"VIRTUAL_ENV": str(prefix), "PATH": path, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


def train(
    trainwright: CommandLine,
    script: str,
    *flags: str,
    within: str,
    env: dict[str, str] | None = None,
    code: int = 0,
) -> str:
    """Runs a script as a user does who has activated the environment and stands beside the script."""
    variables = {**environment(within), **(env or {})}
    return trainwright("run", script, *flags, cwd=SCRIPTS, env=variables, seconds=SECONDS, code=code)


def check(output: str, *, world: int, nodes: int, falls_to: float = 0.2) -> list[Result]:
    """All ranks were there, on that many nodes; the loss fell; their weights are the same; the job is Complete."""
    found = sorted(
        Result(int(rank), int(size), host, float(first), float(last), weights)
        for rank, size, host, first, last, weights in _RESULT.findall(output)
    )
    assert [result.rank for result in found] == list(range(world)), output
    assert {result.world for result in found} == {world}, output
    assert len({result.host for result in found}) == nodes, output
    assert all(result.last < falls_to * result.first for result in found), output
    assert len({result.weights for result in found}) == 1, "the ranks disagree about the weights"
    assert "  Complete  " in output
    return found
