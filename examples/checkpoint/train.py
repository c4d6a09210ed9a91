"""Trains with PyTorch on all ranks, reports its progress, and goes on from its last checkpoint after a failure.

The first attempt fails in the middle on purpose, as a machine would.
"""

import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    from trainwright import progress
except ImportError:  # an image without it: training goes on

    def progress(step, total, **metrics):
        pass


STEPS, FAILS_AT = 60, 35
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
rank, output = dist.get_rank(), pathlib.Path(os.environ["TRAINWRIGHT_OUTPUT"])
checkpoint = output / "last.pt"

model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = 0
if checkpoint.exists():
    saved = torch.load(checkpoint)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"]
if rank == 0:
    print(f"begins at step {first}", flush=True)

for step in range(first + 1, STEPS + 1):
    inputs = torch.randn(32, 4)
    loss = nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()  # gradients are averaged over all ranks here
    optimizer.step()
    progress(step, STEPS, loss=loss.item())
    if step % 10 == 0 and rank == 0:
        new = checkpoint.with_suffix(".new")  # never half of one: written beside it, then put in its place
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, new)
        new.replace(checkpoint)
    if step == FAILS_AT and first == 0 and rank == 1:
        raise RuntimeError("this rank fails once, on purpose")
if rank == 0:
    print(f"ends at step {STEPS}, loss below 0.05: {loss.item() < 0.05}", flush=True)
dist.destroy_process_group()
