"""The TrainJob of a program: a pure function of what was asked for and of where it will run.

On the local cluster the node starts the processes in the user's directory with the user's Python, so the TrainJob names
both. In another cluster it names neither: the working directory travels (`travel.py`), and the image has the Python.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS
from trainwright.api.wellknown import HANG_AFTER, RUN, WORKDIR
from trainwright.cli.failure import Failure
from trainwright.cli.launch.choice import Choice
from trainwright.cli.launch.frameworks import PLAIN
from trainwright.cli.launch.program import Program
from trainwright.cli.launch.travel import Luggage
from trainwright.schema.jsonobject import Json

MOST_WORDS = 128
"""How many items `command` may have, and `args`."""


class Runtime(msgspec.Struct, frozen=True):
    """The runtime of the run, and whether torchrun or mpirun starts its processes."""

    name: str
    kind: str = CLUSTER_TRAINING_RUNTIMES.kind
    is_torch: bool = False
    is_mpi: bool = False

    def interpreter(self, python: str) -> list[str]:
        """The interpreter as this runtime starts it, where torchrun does not."""
        return ["mpirun", python] if self.is_mpi else [python]


def local_trainjob(
    choice: Choice, program: Program, runtime: Runtime, *, name: str, run: str, python: Path, workdir: Path
) -> Json:
    """The TrainJob for the local cluster."""
    torch = [str(python), "-m", "torch.distributed.run", *_torch_flags(choice, program)] if runtime.is_torch else None
    command = _escaped(program.inside(workdir).command_line(runtime.interpreter(str(python)), torch))
    annotations = {RUN: run, WORKDIR: str(workdir)}
    if choice.hang_after is not None:
        annotations[HANG_AFTER] = f"{choice.hang_after:g}"
    return _trainjob(choice, runtime, name, command, annotations)


def remote_trainjob(
    choice: Choice, program: Program, runtime: Runtime, luggage: Luggage, *, name: str, run: str
) -> Json:
    """The TrainJob for any other cluster, with what goes along to it."""
    torch = ["torchrun", *_torch_flags(choice, program)] if runtime.is_torch else None
    command = _escaped(program.command_line(runtime.interpreter(choice.python or "python"), torch))
    job = _trainjob(choice, runtime, name, [*luggage.command, *command], {RUN: run})
    trainer = job["spec"]["trainer"]
    if env := luggage.env():
        trainer["env"] = env
    if patch := luggage.patch():
        job["spec"]["runtimePatches"] = [patch]
    return job


def _trainjob(choice: Choice, runtime: Runtime, name: str, command: list[str], annotations: dict[str, str]) -> Json:
    if (choice.procs or 1) > 1 and runtime.name == PLAIN:
        raise Failure(
            f"--procs {choice.procs}: the runtime plain starts one process on each node; choose another with"
            " --runtime, such as torch-distributed",
            2,
        )
    trainer: Json = {"command": command[:MOST_WORDS]}
    if more := command[MOST_WORDS:]:
        if len(more) > MOST_WORDS:
            raise Failure(f"a command line of {len(command)} words: a TrainJob has room for {2 * MOST_WORDS}", 2)
        trainer["args"] = more
    for field, value in (
        ("image", choice.image),
        ("numNodes", choice.nodes),
        ("numProcPerNode", choice.procs),
        ("resourcesPerNode", choice.resources()),
    ):
        if value:
            trainer[field] = value
    reference = {"name": runtime.name}
    if runtime.kind != CLUSTER_TRAINING_RUNTIMES.kind:
        reference["kind"] = runtime.kind
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"runtimeRef": reference, "trainer": trainer},
    }


def _torch_flags(choice: Choice, program: Program) -> list[str]:
    """With several processes on a node, torchrun marks each line with the process that wrote it."""
    several = max(choice.procs or 1, choice.gpus or 1) > 1
    return ["--tee=3"] if several and program.kind != "command" else []


def _escaped(words: list[str]) -> list[str]:
    """The words, so that Kubernetes' expansion of `$(NAME)` gives them back as they were typed."""
    return [word.replace("$", "$$") if "$(" in word or "$$" in word else word for word in words]
