"""Every framework of a shipped runtime trains on several nodes of the local cluster, with the runtime as it is shipped.

`make test-training` installs the frameworks; without them these tests are skipped.
"""

from __future__ import annotations

import platform

import pytest

from commandline import CommandLine
from training.frameworks import ROOT, check, train

pytestmark = pytest.mark.timeout(330)


def test_jax_on_two_processes(trainwright: CommandLine) -> None:
    check(train(trainwright, "jax_line.py", "--nodes", "2", within="training"), world=2, nodes=2)


def test_xgboost_on_two_workers(trainwright: CommandLine) -> None:
    output = train(
        trainwright, "xgboost_line.py", "--runtime", "xgboost-distributed", "--nodes", "2", within="training"
    )
    check(output, world=2, nodes=2)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="there is no wheel of TensorFlow for this machine")
def test_tensorflow_on_two_workers(trainwright: CommandLine) -> None:
    check(train(trainwright, "tensorflow_line.py", "--nodes", "2", within="training"), world=2, nodes=2)


@pytest.mark.parametrize(
    ("within", "library"),
    [("training", "Open MPI v5"), ("mpich", "MPICH Version"), ("intelmpi", "Intel(R) MPI Library")],
)
def test_mpi4py_on_three_nodes(trainwright: CommandLine, within: str, library: str) -> None:
    output = train(trainwright, "mpi_line.py", "--nodes", "3", within=within)
    check(output, world=3, nodes=3)
    assert f"LIBRARY {library}" in output


def test_mpi4py_on_three_nodes_of_two_processes(trainwright: CommandLine) -> None:
    output = train(trainwright, "mpi_line.py", "--nodes", "3", "--procs", "2", within="mpich")
    check(output, world=6, nodes=3)


def test_mlx_over_mpi(trainwright: CommandLine) -> None:
    library = ROOT / ".venv-training" / "lib" / "libmpi.so.40"  # the wheel's libmpi.so is a link that became a file
    flags = ("--runtime", "mlx-distributed", "--nodes", "2")
    output = train(trainwright, "mlx_line.py", *flags, within="training", env={"MLX_MPI_LIBNAME": str(library)})
    check(output, world=2, nodes=2)


DEEPSPEED = {"DS_ACCELERATOR": "cpu", "DS_SKIP_CUDA_CHECK": "1"}


def test_deepspeed_zero_1_by_torchrun(trainwright: CommandLine) -> None:
    output = train(trainwright, "deepspeed_line.py", "--nodes", "2", within="training", env=DEEPSPEED)
    check(output, world=2, nodes=2)


def test_deepspeed_zero_1_by_its_own_runtime(trainwright: CommandLine) -> None:
    flags = ("--runtime", "deepspeed-distributed", "--nodes", "2")
    check(train(trainwright, "deepspeed_line.py", *flags, within="training", env=DEEPSPEED), world=2, nodes=2)
