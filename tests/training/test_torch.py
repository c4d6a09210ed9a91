"""Real PyTorch on the local cluster: two nodes find each other and train together, and the loss falls."""

from __future__ import annotations

import re
import subprocess
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
    assert re.search(r"Progress  100 %, 288/288, loss=[\d.e-]+", output)
    outputs = re.search(r"^outputs: (.*)$", output, re.MULTILINE)
    assert outputs
    assert (Path(outputs[1]) / "model.pt").exists(), "and it says where the results are"


SCRIPT = """
import argparse, csv
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from network import Line

flags = argparse.ArgumentParser()
flags.add_argument("--lr", type=float, required=True)
rate = flags.parse_args().lr
dist.init_process_group("gloo")
rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(open("data/x.csv"))])
rows = rows[dist.get_rank() :: dist.get_world_size()]
model = DistributedDataParallel(Line())
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for _ in range(60):
    optimizer.zero_grad()
    loss = (model(rows[:, :1]) - rows[:, 1:]).square().mean()
    loss.backward()
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has loss {loss.item():.4f}")
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
"""

NETWORK = """
import torch

class Line(torch.nn.Linear):
    def __init__(self):
        super().__init__(1, 1)
"""


@pytest.mark.timeout(240)
def test_a_script_with_a_neighbour_and_data_trains_on_two_nodes_and_leaves_its_model(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    project = tmp_path / "proj"
    (project / "data").mkdir(parents=True)
    (project / "data" / "x.csv").write_text("".join(f"{x / 10},{x / 5 + 1}\n" for x in range(-10, 10)))
    (project / "train.py").write_text(SCRIPT)
    (project / "network.py").write_text(NETWORK)
    output = trainwright("run", "train.py", "--nodes", "2", "--", "--lr", "0.1", cwd=project, seconds=220)
    losses = re.findall(r"\[rank (\d)\] rank (\d) of 2 has loss ([\d.]+)", output)
    assert sorted((label, rank) for label, rank, _ in losses) == [("0", "0"), ("1", "1")], output
    assert all(float(loss) < 0.1 for _, _, loss in losses)
    assert "Complete" in output
    assert (project / "model.pt").stat().st_size > 500, "where torchrun would have left it"


BUG = """
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == {rank}:
    raise ValueError("this rank has no data")
dist.barrier()
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("processes", "rank", "tee"), [(1, 1, ""), (2, 3, "3")])
def test_the_rank_that_fails_is_the_rank_that_is_blamed(
    trainwright: CommandLine, tmp_path: Path, processes: int, rank: int, tee: str
) -> None:
    (tmp_path / "bug.py").write_text(BUG.format(rank=rank))
    words = ("run", "bug.py", "--nodes", "2", "--procs", str(processes), *(["--env", f"PET_TEE={tee}"] if tee else []))
    done = subprocess.run(
        trainwright.command(*words), cwd=tmp_path, capture_output=True, text=True, timeout=220, check=False
    )
    output = done.stdout
    assert done.returncode == 1, output + done.stderr
    blamed = set(re.findall(r"^\[([^]]*)\] .*ValueError: this rank has no data", output, re.MULTILINE))
    assert blamed == {f"rank {rank}"}, output
    assert "[rank" not in re.sub(r"^\[rank \d\] ", "", output, flags=re.MULTILINE), "torch's mark is not shown twice"
