"""The Python that runs a program on this machine, and the environment that it finds there.

As torchrun would: the interpreter of `--python`, else of the active virtualenv or conda environment, else our own. The
caller's variables come along; they go into the run's record, which only its owner can read, and into no API object.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from trainwright.cli.failure import Failure
from trainwright.cli.launch.program import is_text

_OF_THE_SHELL = frozenset(["_", "OLDPWD", "PWD", "SHLVL"])


def interpreter(asked: str | None, environment: Mapping[str, str]) -> Path:
    """The Python to run with. Raises `Failure` when the one that was asked for is not there."""
    if asked is not None:
        found = shutil.which(os.path.expanduser(asked), path=environment.get("PATH"))
        if found is None:
            raise Failure(f"--python {asked}: there is no such program", 2)
        return Path(found).absolute()
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if active := environment.get(variable):
            python = Path(active) / "bin" / "python"
            if python.exists():
                return python.absolute()
    return Path(sys.executable)


def callers_environment(
    environment: Mapping[str, str], added: Mapping[str, str], python: Path | None, workdir: Path
) -> dict[str, str]:
    """The caller's variables for the run, with those that `--env` added. `python`'s programs come first on PATH.

    What is not UTF-8 stays behind: the record is JSON.
    """
    variables = {
        name: value
        for name, value in environment.items()
        if name not in _OF_THE_SHELL and is_text(name) and is_text(value)
    }
    variables |= {"PWD": str(workdir), **added}
    if python is not None:
        beside, path = str(python.parent), variables.get("PATH", os.defpath)
        if path.split(os.pathsep)[0] != beside:
            variables["PATH"] = os.pathsep.join((beside, path))
    return variables
