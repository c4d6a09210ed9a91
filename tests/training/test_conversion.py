"""Jobs of Training Operator v1, converted, really train on this machine; skipped where their framework is missing."""

from __future__ import annotations

import json
import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from commandline import CommandLine
from training.frameworks import environment
from trainwright.cli.main import main

Json = dict[str, Any]

TORCH = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method="env://")
rank, size = dist.get_rank(), dist.get_world_size()
assert (rank, size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
x = torch.linspace(-1, 1, 60)[rank::size].unsqueeze(1)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = (model(x) - 3 * x - 1).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
weights = [parameter.item() for parameter in model.parameters()]
everybody = [None] * size
dist.all_gather_object(everybody, weights)
assert all(one == weights for one in everybody), everybody
assert losses[-1] < losses[0] / 10, losses
print(f"v1 rank {rank} of {size} learned", flush=True)
dist.barrier()  # gloo may abort a process whose peers leave before it has closed its side
del model
dist.destroy_process_group()
"""

XGBOOST = """
import os
import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
tracker = None
if rank == 0:
    import socket
    tracker = RabitTracker(host_ip=socket.gethostbyname(address), n_workers=size, port=port)
    tracker.start()
with collective.CommunicatorContext(dmlc_tracker_uri=address, dmlc_tracker_port=port, dmlc_task_id=str(rank)):
    noise = np.random.default_rng(rank)
    x = noise.normal(size=(200, 3))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    result = {}
    data = xgb.DMatrix(x, y)
    xgb.train({"objective": "binary:logistic", "eval_metric": "logloss"}, data, 10, [(data, "train")],
              evals_result=result, verbose_eval=False)
    losses = result["train"]["logloss"]
    assert losses[-1] < losses[0] / 2, losses
    print(f"v1 rank {collective.get_rank()} of {collective.get_world_size()} learned", flush=True)
if tracker is not None:
    tracker.wait_for()
"""

JAX = """
import os
import jax
import jax.numpy as jnp

jax.distributed.initialize(
    f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}",
    int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"]),
)
total = jax.pmap(lambda value: jax.lax.psum(value, "i"), axis_name="i")(jnp.ones(jax.local_device_count()))
assert total[0] == jax.device_count(), total
weight, losses = 0.0, []
for _ in range(30):
    value, slope = jax.value_and_grad(lambda w: ((w - 3.0) ** 2))(weight)
    weight, losses = weight - 0.2 * slope, [*losses, float(value)]
assert losses[-1] < losses[0] / 10, losses
print(f"v1 rank {jax.process_index()} of {jax.process_count()} learned", flush=True)
"""

MPI = """
from mpi4py import MPI

world = MPI.COMM_WORLD
assert world.allreduce(world.rank) == sum(range(world.size))
weight, losses = 0.0, []
for _ in range(30):
    slope = world.allreduce(2 * (weight - 3.0)) / world.size
    losses.append((weight - 3.0) ** 2)
    weight -= 0.2 * slope
assert losses[-1] < losses[0] / 10
print(f"v1 rank {world.rank} of {world.size} learned", flush=True)
"""

TENSORFLOW = """
import json
import os
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
role, cluster = config["task"]["type"], config["cluster"]
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if role != "chief":
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=role, task_index=config["task"]["index"], protocol="grpc"
    )
    server.join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight, bias = tf.Variable(0.0), tf.Variable(0.0)
servers = sorted(variable.device.split("/")[3] for variable in (weight, bias))
assert servers == ["task:0", "task:1"], servers
x = tf.linspace(-1.0, 1.0, 60)

@tf.function
def step():
    def on_worker():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(weight * x + bias - (3 * x + 1)))
        for variable, slope in zip((weight, bias), tape.gradient(loss, [weight, bias])):
            variable.assign_sub(0.2 * slope)
        return loss
    return strategy.run(on_worker)

losses = []
for _ in range(40):
    value = coordinator.schedule(step)
    coordinator.join()
    losses.append(float(value.fetch()))
assert losses[-1] < losses[0] / 10, losses
for task in range(len(cluster["worker"])):
    with tf.device(f"/job:worker/replica:0/task:{task}"):
        assert float(tf.reduce_sum(x)) < 1e-3, f"worker {task} does not compute"
print(f"{len(cluster['ps'])} servers and {len(cluster['worker'])} workers learned", flush=True)
"""


def installed(program: str) -> str:
    """A program of the environment of `make test-training`; skips the test where that is not."""
    return str(Path(environment("training")["VIRTUAL_ENV"]) / "bin" / program)


def replica(name: str, script: str, count: int, python: str = "python", **more: Any) -> Json:
    container = {"name": name, "image": "registry.example/any:1", "command": [python, "-c", script], **more}
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}


def v1_job(kind: str, field: str, replicas: Json, **more: Any) -> Json:
    metadata = {"name": f"old-{kind.lower()}", "namespace": "default"}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": metadata, "spec": {field: replicas, **more}}


def trains(trainwright: CommandLine, directory: Path, job: Json, ranks: int) -> None:
    """Converts the job with its proof and runs what came out."""
    output = converted_output(trainwright, directory, job)
    for rank in range(ranks):
        assert f"v1 rank {rank} of {ranks} learned" in output


def converted_output(trainwright: CommandLine, directory: Path, job: Json) -> str:
    """Converts the job with its proof, runs what came out to its end, and returns what it printed."""
    old, new = directory / "old.json", directory / "new.yaml"
    old.write_text(json.dumps(job))
    with redirect_stdout(StringIO()) as printed:
        assert main(["convert", "--quiet", str(old)]) == 0
    new.write_text(printed.getvalue())
    output = trainwright("run", str(new), seconds=150)
    assert "Complete" in output
    return output


@pytest.mark.timeout(200)
@pytest.mark.parametrize("templates", ["one", "two"] if "TRAINWRIGHT_TRAINING" in os.environ else ["two"])
def test_a_pytorchjob_of_a_master_and_two_workers(trainwright: CommandLine, tmp_path: Path, templates: str) -> None:
    workers = replica("pytorch", TORCH, 2)
    if templates == "two":
        workers["template"]["metadata"] = {"labels": {"role": "worker"}}
    replicas = {"Master": replica("pytorch", TORCH, 1), "Worker": workers}
    trains(trainwright, tmp_path, v1_job("PyTorchJob", "pytorchReplicaSpecs", replicas, nprocPerNode="1"), 3)


@pytest.mark.timeout(200)
def test_an_xgboostjob_of_a_master_and_a_worker(trainwright: CommandLine, tmp_path: Path) -> None:
    python = installed("python")
    replicas = {"Master": replica("xgboost", XGBOOST, 1, python), "Worker": replica("xgboost", XGBOOST, 1, python)}
    trains(trainwright, tmp_path, v1_job("XGBoostJob", "xgbReplicaSpecs", replicas), 2)


@pytest.mark.timeout(200)
def test_a_jaxjob_of_two_workers(trainwright: CommandLine, tmp_path: Path) -> None:
    variables = [{"name": "JAX_PLATFORMS", "value": "cpu"}]
    replicas = {"Worker": replica("jax", JAX, 2, installed("python"), env=variables)}
    trains(trainwright, tmp_path, v1_job("JAXJob", "jaxReplicaSpecs", replicas), 2)


@pytest.mark.timeout(200)
def test_an_mpijob_of_a_launcher_and_two_workers(trainwright: CommandLine, tmp_path: Path) -> None:
    launcher = replica("mpi", "", 1)
    variables = [{"name": name, "value": "1"} for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")]
    container = launcher["template"]["spec"]["containers"][0]
    container |= {"command": [installed("mpirun"), "-np", "4", installed("python"), "-c", MPI], "env": variables}
    workers = replica("mpi", "", 2)
    del workers["template"]["spec"]["containers"][0]["command"]
    replicas = {"Launcher": launcher, "Worker": workers}
    trains(trainwright, tmp_path, v1_job("MPIJob", "mpiReplicaSpecs", replicas, slotsPerWorker=2), 4)


@pytest.mark.timeout(200)
def test_a_tfjob_with_two_parameter_servers_and_two_workers(trainwright: CommandLine, tmp_path: Path) -> None:
    python = installed("python")
    counts = {"Chief": 1, "PS": 2, "Worker": 2}
    quiet = [{"name": "TF_CPP_MIN_LOG_LEVEL", "value": "2"}]
    replicas = {name: replica("tensorflow", TENSORFLOW, count, python, env=quiet) for name, count in counts.items()}
    output = converted_output(trainwright, tmp_path, v1_job("TFJob", "tfReplicaSpecs", replicas))
    assert "2 servers and 2 workers learned" in output
