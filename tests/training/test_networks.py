"""Frameworks train with a network for each pod, as root and as a user without rights; two jobs at once do not meet."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commandline import CommandLine
from embedded.test_networks import isolated  # noqa: F401 - a fixture
from training.frameworks import SCRIPTS, check, environment, train

pytestmark = pytest.mark.timeout(330)


@pytest.mark.parametrize(
    ("script", "within", "flags", "world", "nodes"),
    [
        ("torch_line.py", "training", ["--nodes", "2", "--procs", "2"], 4, 2),
        ("mpi_line.py", "mpich", ["--nodes", "3"], 3, 3),
        ("mpi_line.py", "training", ["--nodes", "3"], 3, 3),
    ],
    ids=["torch", "mpich", "openmpi"],
)
def test_frameworks_train_in_isolated_networks(
    isolated: CommandLine,  # noqa: F811
    script: str,
    within: str,
    flags: list[str],
    world: int,
    nodes: int,
) -> None:
    check(train(isolated, script, *flags, within=within), world=world, nodes=nodes)


def test_two_torch_jobs_at_once_on_one_port(isolated: CommandLine) -> None:  # noqa: F811
    variables = environment("training")
    command = isolated.command("run", "torch_line.py", "--nodes", "2", "--env", "PET_MASTER_PORT=29500")
    both = [
        subprocess.Popen(
            command,
            cwd=SCRIPTS,
            env=variables | {"HOME": str(Path.home())},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    for output in [process.communicate(timeout=300)[0] for process in both]:
        check(output, world=2, nodes=2)
