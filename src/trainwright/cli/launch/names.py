"""Names of runs: the program's name and five random letters, so that no run takes another's place."""

from __future__ import annotations

import os
import re

from trainwright.api.runid import fresh_suffix
from trainwright.cli.launch.program import Program

LONGEST_STEM = 30
"""Pods add their own parts to a TrainJob's name, and a host name has 63 letters."""


def fresh_name(program: Program) -> str:
    """A new name for a TrainJob that runs the program: `train-k3x9f`."""
    return f"{stem_of(program)}-{fresh_suffix()}"


def stem_of(program: Program) -> str:
    """The program's name as the beginning of a DNS label; `run` where nothing of it can be used."""
    word = program.what.rpartition(".")[2] if program.kind == "module" else os.path.basename(program.what)
    if program.kind == "script":
        word = word.removesuffix(".py")
    if program.kind == "command" and program.arguments and re.fullmatch(r"python[0-9.]*|bash|sh|torchrun", word):
        scripts = [part for part in program.arguments if part.endswith((".py", ".sh"))]
        word = os.path.basename(scripts[0]).rpartition(".")[0] if scripts else word
    stem = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:LONGEST_STEM].strip("-")
    return stem if stem[:1].isalpha() else f"run-{stem}".strip("-")
