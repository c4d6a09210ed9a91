"""`trainwright init`: writes a commented TrainJob for a framework, and with `--with-runtime` a runtime of your own.

What it writes is whole: it validates, and it trains something small as it is. The files of `starters` are the texts;
a runtime is the shipped one with its comments, as a TrainingRuntime of the TrainJob's own namespace.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from trainwright.cli.failure import Failure
from trainwright.cli.files.offline import SHIPPED

STARTERS = Path(__file__).parent / "starters"


class Framework(NamedTuple):
    runtime: str
    """The shipped runtime."""
    what: str
    """The first line of the file."""


FRAMEWORKS = {
    "torch": Framework("torch-distributed", "PyTorch on @nodes@ nodes: torchrun starts the ranks of each node."),
    "jax": Framework("jax-distributed", "JAX on @nodes@ nodes, one process each."),
    "xgboost": Framework("xgboost-distributed", "XGBoost on @nodes@ nodes: the first one runs the tracker."),
    "deepspeed": Framework("deepspeed-distributed", "DeepSpeed on @nodes@ nodes: mpirun starts the ranks."),
    "mpi": Framework("mpi-distributed", "MPI on @nodes@ nodes: mpirun starts the ranks."),
    "plain": Framework("plain", "@nodes@ pods without a framework, each with its number."),
}


def init(
    framework: str, file: str | None, name: str | None, nodes: int, with_runtime: bool, force: bool, quiet: bool
) -> int:
    name = name or f"my-{framework}-job"
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?", name):
        raise Failure(f"--name {name}: use lower-case letters, digits and '-', beginning with a letter", 2)
    path = file or "trainjob.yaml"
    text = starter(framework, path, name, nodes, with_runtime=with_runtime)
    if path == "-":
        sys.stdout.write(text)
        return 0
    _write(Path(path), text, force=force)
    if not quiet:
        print(f"{path} is written: TrainJob {name}. Train with: trainwright run {path}")
    return 0


def starter(framework: str, path: str, name: str, nodes: int, *, with_runtime: bool) -> str:
    """The text of the file."""
    chosen = FRAMEWORKS[framework]
    words = {
        "what": chosen.what,
        "file": path if path != "-" else "FILE",
        "name": name,
        "nodes": str(nodes),
        "kind": "TrainingRuntime" if with_runtime else "ClusterTrainingRuntime",
        "runtime": f"{name}-runtime" if with_runtime else chosen.runtime,
    }
    text = (STARTERS / f"{framework}.yaml").read_text()
    for _ in range(2):  # the first line has a word of its own
        text = re.sub(r"@(\w+)@( *)", lambda found: _word(words[found[1]], found[0]), text)
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    return f"{text}---\n{_runtime(chosen.runtime, words['runtime'])}" if with_runtime else text


def _word(word: str, found: str) -> str:
    """The word, with as many spaces behind it as keep comments in their column."""
    spaces = len(found) - len(found.rstrip())
    return f"{word}{' ' * spaces}" if spaces < 2 else f"{word:{len(found) - 2}}  "


def _runtime(shipped: str, name: str) -> str:
    """The shipped runtime, as one of the TrainJob's namespace."""
    text = (SHIPPED / f"{shipped}.yaml").read_text()
    text = text.replace("kind: ClusterTrainingRuntime", "kind: TrainingRuntime", 1)
    return text.replace(f"name: {shipped}", f"name: {name}", 1)


def _write(path: Path, text: str, *, force: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o666), "w") as stream:
            stream.write(text)
    except FileExistsError:
        raise Failure(f"{path} is there already; write another with -f FILE, or replace it with --force") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
