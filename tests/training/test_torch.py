"""Real PyTorch through the whole house: two nodes find each other, train together, and the loss falls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commandline import CommandLine

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch-ddp" / "trainjob.yaml"


@pytest.mark.timeout(240)
def test_the_demo_trains_two_nodes_of_two_processes(trainwright: CommandLine) -> None:
    output = trainwright("run", str(EXAMPLE), seconds=220)
    for rank in range(4):
        assert f"[rank {rank}] rank {rank} of 4 is here" in output
    losses = [float(value) for value in re.findall(r"\[rank 0\] epoch +\d+ +loss ([\d.]+)", output)]
    assert len(losses) == 12
    assert losses[-1] < losses[0] / 5
    accuracy = re.search(r"accuracy ([\d.]+)", output)
    assert accuracy
    assert float(accuracy[1]) > 0.95
    assert "Complete" in output
