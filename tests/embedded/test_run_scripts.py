"""`trainwright run train.py` as a person who knows torchrun expects it: their code, data, environment and results."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from commandline import CommandLine, plain_job
from waiting import eventually


def project(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def name_of_run(output: str) -> str:
    found = re.search(r"^(\S+)  Created", output, re.MULTILINE)
    assert found, output
    return found[1]


def test_a_script_finds_its_neighbour_its_data_its_arguments_and_leaves_its_model(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    folder = project(
        tmp_path / "proj",
        neighbour="def load():\n    return open('data/x.csv').read().strip()\n",
        train="""
import os, sys
from neighbour import load
print("arguments", sys.argv[1:], "data", load(), "in", os.getcwd())
if os.environ["JOB_COMPLETION_INDEX"] == "0":
    open("model.pt", "w").write("trained")
""",
    )
    (folder / "data").mkdir()
    (folder / "data" / "x.csv").write_text("1,2,3\n")
    output = trainwright("run", "train.py", "--nodes", "2", "--", "--lr", "0.1", "two words", "$(HOME)", cwd=folder)
    assert f"arguments ['--lr', '0.1', 'two words', '$(HOME)'] data 1,2,3 in {folder}" in output
    assert "Complete" in output
    assert (folder / "model.pt").read_text() == "trained", "where torchrun would have left it"


def test_a_module_and_a_command_run_too(shared: CommandLine, tmp_path: Path) -> None:
    folder = project(tmp_path / "proj")
    package = project(folder / "package", __init__="", fit="import sys; print('fits', __name__, sys.argv[1:])")
    assert "fits __main__ ['-x']" in shared("run", "-m", "package.fit", "--", "-x", cwd=folder)
    (package / "go.sh").write_text('echo "a shell in $PWD"\n')
    assert f"a shell in {package}" in shared("run", "--", "sh", "go.sh", cwd=package)


def test_the_callers_environment_comes_along_and_is_in_no_object(shared: CommandLine, tmp_path: Path) -> None:
    folder = project(tmp_path / "proj", train="import os; print(os.environ['HF_TOKEN'][::-1], os.environ['LR'])")
    output = shared("run", "train.py", "--env", "LR=0.5", cwd=folder, env={"HF_TOKEN": "verysecret", "LR": "1"})
    assert "tercesyrev" in output
    assert " 0.5" in output
    name = name_of_run(output)
    objects = shared("get", "trainjobs", "-o", "json") + shared("get", "pods", "-o", "json")
    assert name in objects
    assert "verysecret" not in objects
    assert all(path.name == "environment.json" for path in files_with(b"verysecret", shared.directory))
    eventually("the record to forget it", lambda: not files_with(b"verysecret", shared.directory))


def files_with(secret: bytes, folder: Path) -> list[Path]:
    """The files that hold this text. One that goes meanwhile does not."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and path.stat().st_size < 10_000_000 and secret in path.read_bytes():
                found.append(path)
        except FileNotFoundError:
            continue
    return found


def test_the_active_virtualenv_runs_it(shared: CommandLine, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    folder = project(tmp_path / "proj", train="import sys; print('prefix', sys.prefix)")
    active = {"VIRTUAL_ENV": str(tmp_path / "env")}
    assert f"prefix {tmp_path / 'env'}" in shared("run", "train.py", cwd=folder, env=active)
    chosen = shared("run", "train.py", "--python", sys.executable, cwd=folder, env=active)
    assert f"prefix {sys.prefix}" in chosen


def test_runs_have_unique_names_and_their_outputs_stay(shared: CommandLine, tmp_path: Path) -> None:
    script = "import os; open(os.environ['TRAINWRIGHT_OUTPUT'] + '/result', 'w').write('kept')"
    folder = project(tmp_path / "proj", train=script)
    first, second = (name_of_run(shared("run", "train.py", cwd=folder)) for _ in range(2))
    assert first != second
    shared("delete", first)
    for run in (first, second):
        assert (shared.directory / "runs" / run / "output" / "result").read_text() == "kept"


def test_a_typo_costs_nothing_of_the_previous_run(shared: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(plain_job("fixed", "print('the first run')"))
    shared("run", str(file))
    before = json.loads(shared("get", "trainjobs", "fixed", "-o", "json"))
    file.write_text(plain_job("fixed", "print('never')").replace("numNodes: 1\n    command", "numNode: 1\n    command"))
    assert 'unknown field "spec.trainer.numNode"' in shared("run", str(file), code=1)
    assert json.loads(shared("get", "trainjobs", "fixed", "-o", "json")) == before
    assert "the first run" in shared("logs", "fixed")
    file.write_text(plain_job("fixed", "print('the second run')"))
    again = shared("run", str(file))
    assert "the second run" in again
    assert "replaces TrainJob fixed" in again
    assert len(list((shared.directory / "runs").glob("fixed-*"))) == 2, "the record of the first run stays"


def test_a_run_that_dies_is_tried_again_and_goes_on_from_its_checkpoint(shared: CommandLine, tmp_path: Path) -> None:
    folder = project(
        tmp_path / "proj",
        train="""
import os, pathlib, sys
saved = pathlib.Path(os.environ["TRAINWRIGHT_OUTPUT"], "step")
first = int(saved.read_text()) if saved.exists() else 0
print("begins at step", first)
for step in range(first, 100):
    if step % 10 == 0:
        saved.write_text(str(step))
    if step == 30 and first == 0:
        sys.exit("out of luck at step 30")
print("reached the end")
""",
    )
    output = shared("run", "train.py", "--retries", "2", cwd=folder)
    name = name_of_run(output)
    assert re.search(r"Restarting .*attempt 2 of 3", output), output
    for line in ("begins at step 0", "out of luck at step 30", "begins at step 30", "reached the end", "Complete"):
        assert line in output
    logs = (shared.directory / "runs" / name / "logs").rglob("*.log")
    said = [path.read_text() for path in logs]
    assert sum("begins at step 0" in text for text in said) == 1, "the first attempt's lines are kept"
    assert sum("begins at step 30" in text for text in said) == 1
    shared("delete", name)
    left = subprocess.run(
        [sys.executable, "-m", "trainwright.cli.main", "get", "runtimes", name, "--dir", str(shared.directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "there is no" in left.stderr, "the run's own runtime goes with its TrainJob"


def test_a_dry_run_prints_the_trainjob_and_starts_nothing(trainwright: CommandLine, tmp_path: Path) -> None:
    folder = project(tmp_path / "proj", train="import torch")
    output = trainwright("run", "train.py", "--nodes", "3", "--retries", "1", "--dry-run", cwd=folder)
    assert "kind: TrainJob" in output
    assert "numNodes: 3" in output
    assert "maxRestarts: 1" in output
    assert not trainwright.directory.exists()


def test_a_detached_run_is_waited_for_suspended_and_resumed(trainwright: CommandLine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)\n"
    folder = project(tmp_path / "proj", train=script)
    output = trainwright("run", "train.py", "--detach", cwd=folder)
    name = name_of_run(output)
    assert f"trainwright logs -f {name}" in output
    assert "has not ended after 0.2 s" in trainwright("wait", name, "--timeout", "0.2", code=124)
    assert "is suspended; its processes have ended" in trainwright("suspend", name)
    assert re.search(rf"{name} +Suspended", trainwright("get"))
    assert trainwright.parsed("get", "pods", "-o", "json")["items"] == []
    trainwright("resume", name)
    go.touch()
    assert "Complete" in trainwright("wait", name)
    assert "has ended (Complete)" in trainwright("suspend", name, code=1)
    assert "there is no TrainJob" in trainwright("wait", "nobody", code=1)


def test_what_a_dry_run_printed_runs_as_a_file_as_often_as_one_likes(shared: CommandLine, tmp_path: Path) -> None:
    folder = project(tmp_path / "proj", train="print('from a file')")
    (folder / "job.yaml").write_text(shared("run", "train.py", "--dry-run", cwd=folder))
    for _ in range(2):
        assert "from a file" in shared("run", "job.yaml", cwd=folder)


def test_a_name_that_no_job_can_have_is_refused_in_a_sentence(shared: CommandLine, tmp_path: Path) -> None:
    folder = project(tmp_path / "proj", train="pass")
    for name in ("Foo_Bar", "ü", "a/b", "..", "a.b", "x" * 80):
        assert name in shared("run", "train.py", "--name", name, code=1, cwd=folder)
        job = plain_job("fine", "pass").replace(
            "metadata:\n  name: fine\nspec:\n  runtimeRef", f"metadata:\n  name: {name!r}\nspec:\n  runtimeRef"
        )
        (folder / "job.yaml").write_text(job)
        assert name in shared("run", "job.yaml", code=1, cwd=folder)


def test_a_cluster_that_another_run_uses_is_not_stopped(trainwright: CommandLine, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"import pathlib, time\nprint('waits')\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)\n"
    folder = project(tmp_path / "proj", first=script, second=script)
    with trainwright.start("run", str(folder / "first.py")) as first:
        assert first.stdout is not None
        assert any("waits" in line for line in first.stdout), "the first run has started its cluster"
        second = name_of_run(trainwright("run", str(folder / "second.py"), "--detach"))
        first.send_signal(signal.SIGINT)  # not a terminal: the first job is deleted
        rest = first.stdout.read()
        first.wait(60)
    assert f"stays up, since other jobs run on it: {second}" in rest
    go.touch()
    assert "Complete" in trainwright("wait", second)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["train.py", "--lr", "0.1"], "arguments of your program go after --: trainwright run … -- --lr 0.1"),
        (["trian.py"], "there is no file trian.py"),
        (["--nodes", "2"], "nothing to run: name a script"),
        (["train.py", "--memory", "lots"], "--memory lots: not an amount"),
        (["train.py", "--env", "NO_SUCH_VARIABLE_HERE"], "is not set here"),
        (["train.py", "--nodes", "0"], "'0' is not a whole number of 1 or more"),
        (["train.py", "--python", "/no/such/python"], "there is no such program"),
        (["train.py", "--output-claim", "results"], "--output-claim is for other clusters"),
        (["train.py", "--workdir", "nowhere"], "--workdir nowhere: there is no such directory"),
        (["job.yaml", "--nodes", "2"], "--nodes: for scripts, modules and commands"),
    ],
)
def test_a_mistake_is_a_sentence_before_anything_starts(
    trainwright: CommandLine, tmp_path: Path, typed: list[str], answer: str
) -> None:
    folder = project(tmp_path / "proj", train="pass")
    (folder / "job.yaml").write_text(plain_job("x", "pass"))
    assert answer in trainwright("run", *typed, code=2, cwd=folder, env={"PATH": os.environ["PATH"]})
    assert not trainwright.directory.exists()
