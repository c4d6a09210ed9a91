"""The programs that `tests/kube/binaries` pins and builds, for the benchmarks that start them."""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from kube.binaries import build  # noqa: E402 - a benchmark is run as a script

PROGRAMS = build

__all__ = ["PROGRAMS", "ROOT", "compile_ours"]


def compile_ours() -> None:
    """Compile our modules, as pip and `make setup` do for users. Where Python writes no bytecode by itself, every start
    would otherwise compile again what was edited since.
    """
    compileall.compile_dir(ROOT / "src" / "trainwright", quiet=2)
