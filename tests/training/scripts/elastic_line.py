"""Fits a line with DistributedDataParallel on whatever nodes there are, with a checkpoint at every fifth step.

`elastic_line.py DIRECTORY`: rank 0 writes every step to DIRECTORY/steps.jsonl; training ends when DIRECTORY/enough is
there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

EVERY = 5
home = Path(sys.argv[1])
checkpoint = home / "checkpoint.pt"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.linspace(-1, 1, 240).unsqueeze(1)
y = 2 * x + 1
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
if checkpoint.exists():
    state = torch.load(checkpoint)
    model.module.load_state_dict(state["model"])
    step = state["step"]
print(f"rank {rank} of {world} begins at step {step}", flush=True)
enough = torch.zeros(1)
while not enough.item():
    optimizer.zero_grad()
    loss = (model(x[rank::world]) - y[rank::world]).square().mean()
    loss.backward()
    optimizer.step()
    if rank == 0:
        with torch.no_grad():
            error = (model.module(x) - y).square().mean().item()
        with (home / "steps.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "world": world, "loss": error}) + "\n")
    step += 1
    if rank == 0 and step % EVERY == 0:
        part = checkpoint.with_suffix(".part")
        torch.save({"model": model.module.state_dict(), "step": step}, part)
        os.replace(part, checkpoint)
    enough.fill_((home / "enough").exists())
    dist.broadcast(enough, 0)
    time.sleep(0.2)
print(f"rank {rank} of {world} ends at step {step} with loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
