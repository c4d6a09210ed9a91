"""Training as a user without any rights, and on a machine that forbids namespaces."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from commandline import CommandLine, command_line
from training.frameworks import check, train

UNPRIVILEGED = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Another user, with no capability, to whom the files of whoever runs the tests belong."""
FORBIDDEN = (
    *("unshare", "--map-root-user", "sh", "-c"),
    'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --bounding-set=-all "$@"',
    "sh",
)
"""No capability, and no namespace can be made."""

pytestmark = pytest.mark.timeout(330)


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[CommandLine]:
    with behind(UNPRIVILEGED, tmp_path) as line:
        yield line


@pytest.fixture
def without_namespaces(tmp_path: Path) -> Iterator[CommandLine]:
    with behind(FORBIDDEN, tmp_path) as line:
        yield line


def behind(words: tuple[str, ...], directory: Path) -> AbstractContextManager[CommandLine]:
    """The command line, started by another command."""
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a user namespace is needed, to take rights away in it")
    return command_line(directory / "cluster", words)


@pytest.mark.parametrize(
    ("script", "flags"),
    [
        ("torch_line.py", ["--procs", "2"]),
        ("jax_line.py", []),
        ("xgboost_line.py", ["--runtime", "xgboost-distributed"]),
    ],
)
def test_frameworks_train_without_namespaces(without_namespaces: CommandLine, script: str, flags: list[str]) -> None:
    output = train(without_namespaces, script, "--nodes", "2", *flags, within="training")
    check(output, world=4 if "--procs" in flags else 2, nodes=1)  # pods have no host name of their own


def test_mpi_without_namespaces_is_refused_with_the_reason(without_namespaces: CommandLine) -> None:
    output = train(without_namespaces, "mpi_line.py", "--nodes", "2", within="mpich", code=1)
    assert "namespaces" in output


@pytest.mark.parametrize(
    ("script", "within", "flags"),
    [
        ("torch_line.py", "training", ["--procs", "2"]),
        ("jax_line.py", "training", []),
        ("xgboost_line.py", "training", ["--runtime", "xgboost-distributed"]),
        ("mpi_line.py", "mpich", []),
    ],
)
def test_a_user_without_rights_trains(unprivileged: CommandLine, script: str, within: str, flags: list[str]) -> None:
    output = train(unprivileged, script, "--nodes", "2", *flags, within=within)
    check(output, world=4 if "--procs" in flags else 2, nodes=2)
