"""The user's Python and environment run the program on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainwright.cli.failure import Failure
from trainwright.cli.launch.interpreter import callers_environment, interpreter


def python_in(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


def test_the_active_environment_runs_it_unless_another_python_is_named(tmp_path: Path) -> None:
    venv, conda = python_in(tmp_path / "venv"), python_in(tmp_path / "conda")
    both = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert interpreter(None, both) == venv
    assert interpreter(None, {"CONDA_PREFIX": str(tmp_path / "conda")}) == conda
    assert interpreter(str(conda), both) == conda
    assert interpreter("python", {"PATH": str(conda.parent), **both}) == conda


def test_without_any_it_is_our_own(tmp_path: Path) -> None:
    assert interpreter(None, {}) == Path(sys.executable)
    assert interpreter(None, {"VIRTUAL_ENV": str(tmp_path / "removed")}) == Path(sys.executable)
    with pytest.raises(Failure, match="there is no such program"):
        interpreter("/no/such/python", {})


def test_the_callers_variables_come_along(tmp_path: Path) -> None:
    caller = {"PATH": "/usr/bin", "HF_TOKEN": "x", "PWD": "/elsewhere", "_": "/bin/trainwright", "LR": "1"}
    got = callers_environment(caller, {"LR": "2"}, Path("/venv/bin/python"), tmp_path)
    assert got == {"PATH": "/venv/bin:/usr/bin", "HF_TOKEN": "x", "LR": "2", "PWD": str(tmp_path)}
    assert callers_environment(caller, {}, None, tmp_path)["PATH"] == "/usr/bin"
