"""Least squares with PyTorch's DistributedDataParallel on gloo, started by torchrun."""

from __future__ import annotations

import torch
import torch.distributed
from report import line_data, linger, report

torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(rank)  # DistributedDataParallel makes the weights of all ranks those of the first
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
x, y = (torch.from_numpy(part) for part in line_data(rank, world))
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    linger()
report(rank, world, losses, [weight.detach() for weight in model.parameters()])
torch.distributed.barrier()
del model
torch.distributed.destroy_process_group()
