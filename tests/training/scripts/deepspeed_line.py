"""Least squares with DeepSpeed's ZeRO stage 1 on CPUs, started by torchrun or by an MPI."""

from __future__ import annotations

import deepspeed
import torch
from report import line_data, linger, report

deepspeed.init_distributed("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
settings = {
    "train_micro_batch_size_per_gpu": 8,
    "optimizer": {"type": "Adam", "params": {"lr": 0.05, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
x, y = (torch.from_numpy(part) for part in line_data(rank, world))
losses = []
for _ in range(40):
    loss = (engine(x) - y).square().mean()
    engine.backward(loss)
    engine.step()
    torch.distributed.all_reduce(mean := loss.detach().clone())
    losses.append(float(mean) / world)
    linger()
report(rank, world, losses, [weight.detach() for weight in model.parameters()])
torch.distributed.destroy_process_group()
