"""The program of a run: a Python script, a module (`-m`), or any command.

In: what was typed. Out: a `Program`, and its command line for a runtime: torchrun where the runtime is PyTorch's, since
torchrun reads the variables that such a runtime sets; mpirun where it is an MPI's, whose launcher pod starts all
others; the interpreter itself elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from trainwright.cli.failure import Failure

LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
"""Words of a command that begins PyTorch's processes by itself."""
MPI_LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra")


class Program(msgspec.Struct, frozen=True):
    """`what` is a path, a module's name, or the first word of a command."""

    kind: Literal["script", "module", "command"]
    what: str
    arguments: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """What was asked for, as a person would type it."""
        import shlex

        words = [*(("-m",) if self.kind == "module" else ()), self.what, *self.arguments]
        return shlex.join(words)

    @property
    def launches_torch(self) -> bool:
        """Whether this is a command that calls torchrun itself."""
        words = (os.path.basename(self.what), *self.arguments[:3])
        return self.kind == "command" and any(word in LAUNCHERS for word in words)

    @property
    def launches_mpi(self) -> bool:
        """Whether this is a command that calls mpirun itself."""
        return self.kind == "command" and os.path.basename(self.what) in MPI_LAUNCHERS

    def command_line(self, python: Sequence[str], torch: Sequence[str] | None) -> list[str]:
        """The words to run. `python` is the interpreter, `torch` is torchrun with its flags or None."""
        if self.kind == "command":
            return [self.what, *self.arguments]
        target = ["-m", self.what] if self.kind == "module" else [self.what]
        return [*(python if torch is None else torch), *target, *self.arguments]

    def inside(self, workdir: Path) -> Program:
        """The program as seen from its working directory: a script's path becomes relative to it where it can."""
        if self.kind != "script":
            return self
        script = Path(self.what).expanduser().absolute()
        path = str(script.relative_to(workdir) if script.is_relative_to(workdir) else script)
        return msgspec.structs.replace(self, what=f"./{path}" if path.startswith("-") else path)


def is_text(word: str) -> bool:
    """Whether a word of the command line or of the environment is UTF-8. Python reads other bytes as surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def program_of(file: str | None, module: str | None, arguments: Sequence[str]) -> Program | None:
    """The program that was typed, or None when `file` is a manifest. Raises `Failure` when nothing was typed, or bytes
    that no API object can hold.
    """
    for word in (*arguments, module or "", file or ""):
        if not is_text(word):
            raise Failure(f"{os.fsencode(word)!r} is not UTF-8: a TrainJob cannot hold it", 2)
    if file is not None and module is not None:
        raise Failure(
            f"-m {module} and {file} exclude each other; arguments go after --: trainwright run -m {module} -- {file}",
            2,
        )
    if module is not None:
        return Program("module", module, tuple(arguments))
    if file is None:
        if not arguments:
            raise Failure(
                "nothing to run: name a script (train.py), a module (-m package.module), a command (-- COMMAND) or a"
                " file with a TrainJob",
                2,
            )
        return Program("command", arguments[0], tuple(arguments[1:]))
    if not file.endswith(".py"):
        return None
    if not Path(file).expanduser().is_file():
        raise Failure(f"there is no file {file}", 2)
    return Program("script", file, tuple(arguments))
