"""Least squares with JAX on any number of processes: each has a share of the data, the gradients are summed."""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from report import line_data, linger, report

jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
)
x, y = line_data(jax.process_index(), jax.process_count())
mesh = Mesh(numpy.array(jax.devices()), ("data",))
share = NamedSharding(mesh, PartitionSpec("data"))
x, y = (jax.make_array_from_process_local_data(share, part) for part in (x, y))


@jax.jit
def step(weights, x, y):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w[:1] + w[1] - y) ** 2))(weights)
    return weights - 0.3 * gradient, loss


weights, losses = jnp.zeros((2, 1)), []
for _ in range(40):
    weights, loss = step(weights, x, y)
    losses.append(float(loss))
    linger()
multihost_utils.sync_global_devices("done")
report(jax.process_index(), jax.process_count(), losses, [numpy.asarray(weights.addressable_data(0))])
