"""A small network with DeepSpeed's ZeRO stage 1: each rank keeps its share of the optimizer's state."""

import os

import torch

if not torch.cuda.is_available():
    os.environ |= {"DS_ACCELERATOR": "cpu", "DS_SKIP_CUDA_CHECK": "1"}
import deepspeed

deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")  # finds the ranks by MPI or by torchrun
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)  # all ranks begin with the same weights
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
model, *_ = deepspeed.initialize(
    model=net,
    model_parameters=net.parameters(),
    config={
        "train_micro_batch_size_per_gpu": 64,
        "optimizer": {"type": "Adam", "params": {"lr": 0.02, "torch_adam": True}},
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)
torch.manual_seed(rank + 1)  # and every rank has data of its own
for step in range(1, 101):
    points = torch.randn(64, 8, device=model.device)
    loss = ((model(points) - torch.tanh(points.sum(1, keepdim=True))) ** 2).mean()
    model.backward(loss)
    model.step()
    if rank == 0 and step % 50 == 0:
        print(f"step {step}  loss {loss.item():.4f}", flush=True)
if rank == 0:
    print(f"on {world} ranks, loss below 0.3: {loss.item() < 0.3}", flush=True)
torch.distributed.destroy_process_group()
