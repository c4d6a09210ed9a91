"""Training outlives the control plane: it is killed while ranks talk to each other, starts again, and nobody notices.

`TRAINWRIGHT_TRAINING_KILLS` is how often; `make test-long` asks for fifty.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from commandline import CommandLine, processes_of_pods
from training.frameworks import ROOT, SCRIPTS, check, environment
from waiting import eventually

KILLS = int(os.environ.get("TRAINWRIGHT_TRAINING_KILLS", "2"))

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: survivor
spec:
  runtimeRef:
    name: {runtime}
  trainer:
    numNodes: 2
    command: {command}
"""


@pytest.mark.timeout(120 + 20 * KILLS)
def test_an_mpi_job_never_notices_that_the_control_plane_dies(trainwright: CommandLine, tmp_path: Path) -> None:
    variables = environment("mpich")
    python = str(ROOT / ".venv-mpich" / "bin" / "python")
    command = ["mpirun", python, str(SCRIPTS / "mpi_line.py"), str(0.2 + KILLS / 4), str(tmp_path)]
    (tmp_path / "job.yaml").write_text(JOB.format(runtime="mpi-distributed", command=command))
    trainwright("up", "--detach", env=variables)
    trainwright("run", str(tmp_path / "job.yaml"), "--detach")

    def ranks() -> list[str]:
        return processes_of_ranks(str(tmp_path))

    eventually("both ranks train", lambda: len(ranks()) == 2, 60)
    before = ranks()
    for _ in range(KILLS):
        trainwright.kill_control_plane()
        eventually("it is dead", lambda: not Path(f"/proc/{trainwright.pid}").exists())
        trainwright("up", "--detach", env=variables)
        assert ranks() == before, "the same processes, none more and none less"
    output = trainwright("wait", "survivor", "--timeout", "200s", seconds=220)
    assert "Complete" in output, output
    check(trainwright("logs", "survivor") + "  Complete  ", world=2, nodes=2)
    eventually("nothing of its pods runs", lambda: not processes_of_pods(trainwright.directory))


def processes_of_ranks(mark: str) -> list[str]:
    """The pid of every Python process that has the mark as an argument, in order."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0].endswith("python") and words[1].endswith("_line.py") and mark in words:
                found.append(entry.name)
    return sorted(found)
