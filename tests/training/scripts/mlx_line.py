"""Least squares with MLX on the ranks of an MPI."""

from __future__ import annotations

import mlx.core as mx
import numpy
from report import line_data, linger, report

mx.set_default_device(mx.cpu)
group = mx.distributed.init(backend="mpi")
x, y = (mx.array(part) for part in line_data(group.rank(), group.size()))
weights, losses = mx.zeros((2, 1)), []
step = mx.value_and_grad(lambda w: mx.mean((x @ w[:1] + w[1] - y) ** 2))
for _ in range(40):
    loss, gradient = step(weights)
    loss = mx.distributed.all_sum(loss) / group.size()
    weights = weights - 0.3 * mx.distributed.all_sum(gradient) / group.size()
    mx.eval(weights, loss)
    losses.append(loss.item())
    linger()
report(group.rank(), group.size(), losses, [numpy.array(weights)])
