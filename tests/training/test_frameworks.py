"""Every framework of a shipped runtime trains on several nodes of the local cluster, with the runtime as it is shipped.

`make test-training` installs the frameworks; without them these tests are skipped.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commandline import CommandLine
from training.frameworks import ROOT, check, environment, train

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


def test_mpi4py_on_three_nodes_under_an_open_mpi_4_of_this_machine(trainwright: CommandLine, tmp_path: Path) -> None:
    found = shutil.which("mpirun")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout if found else ""
    if not re.search(r"\(Open ?(MPI|RTE)\) 4\.", version):
        pytest.skip("there is no Open MPI 4 on this machine")
    variables = environment("mpich")
    # An environment with the packages of that one, and without its mpirun, which would come first.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = Path(variables["VIRTUAL_ENV"]).glob("lib/python3*/site-packages")
    (own,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    (own / "packages.pth").write_text(f"{packages}\n")
    env = {
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "PATH": f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "MPI4PY_LIBMPI": "libmpi.so.40",
    }
    output = train(trainwright, "mpi_line.py", "--nodes", "3", within="mpich", env=env)
    check(output, world=3, nodes=3)
    assert "LIBRARY Open MPI v4" in output


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
