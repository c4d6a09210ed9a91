"""The programs that `tests/kube/binaries` pins and builds, for the benchmarks that start them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from kube.binaries import build  # noqa: E402 - a benchmark is run as a script

PROGRAMS = build

__all__ = ["PROGRAMS", "ROOT"]
