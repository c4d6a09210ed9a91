"""What a user of `run` waits for before anything is sent: no more is imported than is needed to create a TrainJob."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOT_BEFORE = ("trainwright.pipeline", "trainwright.plugins", "trainwright.operator", "trainwright.cli.run.following")
"""What explains, renders or follows a job: it is imported while the cluster starts the job's pods."""


@pytest.mark.parametrize("more", ["trainwright.cli.files.documents", "trainwright.cli.launch.preparation"])
def test_a_run_imports_what_follows_its_job_after_the_job_is_created(more: str) -> None:
    program = f"import sys, trainwright.cli.main, trainwright.cli.run.command, trainwright.cli.run.making, {more}\n"
    program += f"print(*(name for name in sys.modules if name.startswith({NOT_BEFORE!r})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
