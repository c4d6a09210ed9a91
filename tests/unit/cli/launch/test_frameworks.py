"""The runtime of a script follows from its imports, and its name from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.api.runid import is_run_id
from trainwright.cli.launch.frameworks import default_runtime, script_of_module
from trainwright.cli.launch.names import fresh_name, stem_of
from trainwright.cli.launch.program import Program


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__in__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "runtime"),
    [
        ("import torch.nn as nn", "torch-distributed"),
        ("def main():\n    from lightning.pytorch import Trainer", "torch-distributed"),
        ("from transformers import Trainer", "torch-distributed"),
        ("import jax", "jax-distributed"),
        ("import jax, torch", "torch-distributed"),
        ("import tensorflow as tf", "tensorflow-distributed"),
        ("from mpi4py import MPI", "mpi-distributed"),
        ("import torchlike", "plain"),
        ("# import torch\n'import torch'", "plain"),
        ("print('hello')", "plain"),
        ("this is not Python", "plain"),
    ],
)
def test_a_script_gets_the_runtime_of_what_it_imports(tmp_path: Path, text: str, runtime: str) -> None:
    write(tmp_path, train=text)
    assert default_runtime(tmp_path / "train.py", [tmp_path]) == runtime


def test_neighbours_are_read_too_and_circles_end(tmp_path: Path) -> None:
    write(tmp_path, train="from models import big", models__in____init__="", models__in__big="import layers")
    write(tmp_path, layers="import train, torch")
    assert default_runtime(tmp_path / "train.py", [tmp_path]) == "torch-distributed"


def test_a_relative_import_is_followed(tmp_path: Path) -> None:
    write(tmp_path, pkg__in____init__="", pkg__in__train="from . import model", pkg__in__model="import torch")
    script = script_of_module("pkg.train", [tmp_path])
    assert script == tmp_path / "pkg" / "train.py"
    assert default_runtime(script, [tmp_path]) == "torch-distributed"


def test_a_package_is_run_by_its_main(tmp_path: Path) -> None:
    write(tmp_path, pkg__in____init__="", pkg__in____main__="import torch")
    assert script_of_module("pkg", [tmp_path]) == tmp_path / "pkg" / "__main__.py"
    assert script_of_module("installed.elsewhere", [tmp_path]) is None


@pytest.mark.parametrize(
    ("program", "stem"),
    [
        (Program("script", "src/Train_MNIST.py"), "train-mnist"),
        (Program("module", "package.fit"), "fit"),
        (Program("command", "./run.sh"), "run-sh"),
        (Program("command", "python", ("-u", "jobs/eval.py")), "eval"),
        (Program("script", "2024.py"), "run-2024"),
        (Program("script", "überraschung.py"), "berraschung"),
        (Program("script", "__.py"), "run"),
        (Program("script", "x" * 80 + ".py"), "x" * 30),
    ],
)
def test_a_name_begins_with_what_is_run(program: Program, stem: str) -> None:
    assert stem_of(program) == stem


def test_names_are_unique_and_run_ids() -> None:
    names = {fresh_name(Program("script", "train.py")) for _ in range(200)}
    assert len(names) == 200
    assert all(name.startswith("train-") and is_run_id(name) for name in names)


def test_a_command_that_calls_torchrun_is_known() -> None:
    assert Program("command", "/venv/bin/torchrun", ("t.py",)).launches_torch
    assert Program("command", "python", ("-m", "torch.distributed.run", "t.py")).launches_torch
    assert not Program("command", "python", ("t.py",)).launches_torch
