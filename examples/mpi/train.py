"""Least squares over MPI with mpi4py: every rank has points of its own, the gradients are averaged by Allreduce."""

import numpy
from mpi4py import MPI

everyone = MPI.COMM_WORLD
dice = numpy.random.default_rng(everyone.rank)
x = dice.uniform(-1, 1, 256)
y = 3 * x - 1 + dice.normal(0, 0.01, x.size)
weights = numpy.zeros(2)
for step in range(1, 101):
    error = weights[0] * x + weights[1] - y
    mine = numpy.array([(error**2).mean(), 2 * (error * x).mean(), 2 * error.mean()])
    mean = numpy.empty(3)
    everyone.Allreduce(mine, mean)
    mean /= everyone.size
    weights -= 0.3 * mean[1:]
    if everyone.rank == 0 and step % 50 == 0:
        print(f"step {step}  loss {mean[0]:.4f}", flush=True)
if everyone.rank == 0:
    print(f"on {everyone.size} ranks, y = {weights[0]:.1f}x {weights[1]:+.1f}", flush=True)
