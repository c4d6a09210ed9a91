"""Training outlives the control plane: it is killed while ranks talk to each other, starts again, and nobody notices.

`TRAINWRIGHT_TRAINING_KILLS` is how often; `make test-long` asks for twenty.
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
    env: {variables}
"""


KINDS = {
    "torch": ("torch-distributed", "training", "torchrun"),
    "jax": ("jax-distributed", "training", "python"),
    "xgboost": ("xgboost-distributed", "training", "python"),
    "tensorflow": ("tensorflow-distributed", "training", "python"),
    "mpi": ("mpi-distributed", "mpich", "mpirun python"),
    "mlx": ("mlx-distributed", "training", "mpirun python"),
    "deepspeed": ("deepspeed-distributed", "training", "mpirun python"),
}
"""Of each framework: its runtime, its environment, and what starts its script."""
STEPS = 40
VARIABLES = {"DS_ACCELERATOR": "cpu", "MLX_MPI_LIBNAME": str(ROOT / ".venv-training" / "lib" / "libmpi.so.40")}


@pytest.mark.timeout(200 + 30 * KILLS)
@pytest.mark.parametrize("kind", KINDS)
def test_training_never_notices_that_the_control_plane_dies(
    trainwright: CommandLine, tmp_path: Path, kind: str
) -> None:
    runtime, within, starter = KINDS[kind]
    variables = environment(within) | VARIABLES
    program = f"{variables['VIRTUAL_ENV']}/bin"
    words = [word if word == "mpirun" else f"{program}/{word}" for word in starter.split()]
    command = [*words, str(SCRIPTS / f"{kind}_line.py"), str(tmp_path)]
    (tmp_path / "job.yaml").write_text(JOB.format(runtime=runtime, command=command, variables=entries(variables)))
    allow(tmp_path, 1)
    trainwright("up", "--detach", env=variables)
    trainwright("run", str(tmp_path / "job.yaml"), "--detach", env=variables)

    def ranks() -> list[str]:
        return processes_of_ranks(str(tmp_path))

    eventually("both ranks train", lambda: len(ranks()) == 2, 120)
    before = ranks()
    for kill in range(KILLS):
        trainwright.kill_control_plane()
        eventually("it is dead", lambda: not Path(f"/proc/{trainwright.pid}").exists())
        allow(tmp_path, max(1, STEPS * (kill + 1) // (KILLS + 1)))
        trainwright("up", "--detach", env=variables)
        assert ranks() == before, "the same processes, none more and none less"
    allow(tmp_path, STEPS + 1)
    output = trainwright("wait", "survivor", "--timeout", "200s", seconds=220)
    assert "Complete" in output, output
    check(trainwright("logs", "survivor") + "  Complete  ", world=2, nodes=2)
    eventually("nothing of its pods runs", lambda: not processes_of_pods(trainwright.directory))


def allow(directory: Path, steps: int) -> None:
    """Lets the ranks take so many steps in all; then they wait, however slow this machine is."""
    (directory / ".steps").write_text(str(steps))
    (directory / ".steps").replace(directory / "steps")


def entries(variables: dict[str, str]) -> str:
    chosen = {name: value for name, value in variables.items() if name != "PATH"}
    return "[" + ", ".join(f'{{name: {name}, value: "{value}"}}' for name, value in chosen.items()) + "]"


def processes_of_ranks(mark: str) -> list[str]:
    """The pid of every Python process that has the mark as an argument, in order."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            script = next((word for word in words[1:] if word != "-u"), "")  # torchrun starts its ranks with -u
            if words[0].endswith("python") and script.endswith("_line.py") and mark in words:
                found.append(entry.name)
    return sorted(found)
