"""kubectl 1.36.4 on the embedded API server: every command of its surface, its exit code and what it shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import command_line
from kubectl import transcript
from kubectl.kubectl import Kubectl
from kubectl.steps import STEPS, Step

pytestmark = pytest.mark.timeout(600)  # the first test plays all steps


@pytest.fixture(scope="module")
def said(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[transcript.Transcript]:
    directory = tmp_path_factory.mktemp("api-only")
    with command_line(directory / "state") as line:
        line("up", "--detach", "--api-only")
        yield transcript.run(Kubectl(kubectl_program, line.kubeconfig, directory / "home"), STEPS)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.id)
def test_command(said: transcript.Transcript, step: Step) -> None:
    problem = transcript.wrong(step, said[step.id])
    assert not problem, problem
