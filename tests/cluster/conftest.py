"""Real systems that stand around the operator in a cluster.

They need Go once, to build the programs: they are collected only when this folder is named (`make test-cluster`).
With TRAINWRIGHT_SHORT, as in `.ci/run`, only those that need no program beyond `make test-kube`'s.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SHORT = ("test_takeover.py",)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if not any(HERE in (path, *path.parents) for path in asked):
        return True
    is_long = collection_path.suffix == ".py" and collection_path.name not in SHORT
    return True if os.environ.get("TRAINWRIGHT_SHORT") and HERE in asked and is_long else None
