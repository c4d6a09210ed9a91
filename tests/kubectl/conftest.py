"""kubectl 1.36.4 itself, built once by Go: collected only when this folder is named (`make test-kubectl`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import CommandLine, command_line
from kube.binaries import build
from kubectl.kubectl import Kubectl

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(HERE in (path, *path.parents) for path in asked) else True


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    return build.program("kubectl")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A whole local cluster: API server, operator, workload controllers, node."""
    directory = tmp_path_factory.mktemp("cluster")
    with command_line(directory / "state") as line:
        line("up", "--detach")
        yield line
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, cluster: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubectl_program, cluster.kubeconfig, tmp_path_factory.mktemp("home"))
