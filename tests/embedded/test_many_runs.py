"""Runs in a loop, with Ctrl-C, kills and typos mixed in: each is listed with its true end, and nothing is left over.

Each program writes into a file of its own that it began and that it came to its end, so that the test knows the truth
without asking Trainwright. `make test-long` does 100 of them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commandline import CommandLine, processes_of
from waiting import eventually

RUNS = int(os.environ.get("TRAINWRIGHT_RUNS", "10"))

PROGRAM = """
import pathlib, sys, time
witness, seconds, code = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
with witness.open("a") as file:
    file.write("began\\n")
print("began", flush=True)
time.sleep(seconds)
with witness.open("a") as file:
    file.write("ended\\n")
sys.exit(code)
"""


class Loop:
    """The cluster and the programs of one test."""

    def __init__(self, trainwright: CommandLine, directory: Path) -> None:
        self.trainwright = trainwright
        self.directory = directory
        self.program = directory / "work.py"
        self.program.write_text(PROGRAM)
        self.dice = random.Random(20)

    def witness(self, name: str) -> Path:
        return self.directory / f"{name}.witness"

    def start(self, name: str, seconds: float, code: int = 0) -> subprocess.Popen[str]:
        arguments = ["--", str(self.witness(name)), str(seconds), str(code)]
        directory = ["--dir", str(self.trainwright.directory)]
        command = self.trainwright.command("status")[:-3]
        return subprocess.Popen(
            [*command, "run", "--name", name, *directory, str(self.program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def any_moment(self) -> None:
        """A moment between the command's first import and the program's middle."""
        time.sleep(self.dice.uniform(0.0, 1.5))

    def record(self, name: str) -> dict[str, Any] | None:
        listed: list[dict[str, Any]] = self.trainwright.parsed("runs", "-o", "json")
        named = [run for run in listed if run["name"] == name]
        assert len(named) <= 1, f"{name} is recorded {len(named)} times"
        return named[0] if named else None

    def began(self, name: str) -> int:
        return self._count(name, "began")

    def ended(self, name: str) -> int:
        return self._count(name, "ended")

    def _count(self, name: str, word: str) -> int:
        file = self.witness(name)
        return file.read_text().split().count(word) if file.exists() else 0


Check = Callable[[], None]


def well(loop: Loop, name: str) -> Check:
    with loop.start(name, 0.1) as run:
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    return lambda: expect(loop, name, "Complete", exit_code=0)


def badly(loop: Loop, name: str) -> Check:
    with loop.start(name, 0.1, code=3) as run:
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 1, output
    return lambda: expect(loop, name, "Failed", exit_code=3)


def with_a_typo(loop: Loop, name: str) -> Check:
    file = loop.directory / f"{name}.yaml"
    file.write_text(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
        f"metadata: {{name: {name}}}\nspec: {{runtimeRef: {{name: plain}}, trainer: {{numNode: 2}}}}\n"
    )
    assert "numNode" in loop.trainwright("run", str(file), code=1)

    def check() -> None:
        run = loop.record(name)
        assert run is None or run["state"] == "Failed"

    return check


def ended_by_ctrl_c(loop: Loop, name: str) -> Check:
    with loop.start(name, 600) as run:
        loop.any_moment()
        output = interrupt(run)
    assert run.returncode != 0, output  # 130, but for a signal that comes before Python itself is ready for one

    def check() -> None:
        run = eventually(f"{name} to be over", lambda: over(loop, name))
        assert run["state"] == "Deleted" or run["reason"] == "NotSubmitted", run
        assert loop.ended(name) == 0

    return check


def interrupt(run: subprocess.Popen[str]) -> str:
    """Presses Ctrl-C, and again if nothing comes of it: Python loses one that comes in the middle of an import."""
    for _ in range(6):
        run.send_signal(signal.SIGINT)
        try:
            return run.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("Ctrl-C does not end it")


def with_a_kill_of_the_command(loop: Loop, name: str) -> Check:
    with loop.start(name, 0.5) as run:
        loop.any_moment()
        run.kill()
        run.communicate(timeout=60)
    return lambda: expect_all_or_nothing(loop, name)


def with_a_kill_of_both(loop: Loop, name: str) -> Check:
    with loop.start(name, 0.5) as run:
        loop.any_moment()
        loop.trainwright.kill_control_plane()
        run.kill()
        run.communicate(timeout=60)
    eventually("the control plane to be gone", lambda: "No local" in loop.trainwright("status", code=None))
    loop.trainwright("up", "--detach")
    return lambda: expect_all_or_nothing(loop, name)


def with_a_kill_of_the_control_plane(loop: Loop, name: str) -> Check:
    with loop.start(name, 0.5) as run:
        eventually(f"{name} to begin", lambda: loop.began(name))
        loop.any_moment()
        loop.trainwright.kill_control_plane()
        eventually("the control plane to be gone", lambda: "No local" in loop.trainwright("status", code=None))
        loop.trainwright("up", "--detach")
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    return lambda: expect(loop, name, "Complete", exit_code=0)


def expect(loop: Loop, name: str, state: str, exit_code: int) -> None:
    def look() -> bool:
        run = loop.record(name)
        return run is not None and (run["state"], run["exit_code"]) == (state, exit_code)

    eventually(f"{name} to be recorded as {state}: {loop.record(name)}", look)
    assert (loop.began(name), loop.ended(name)) == (1, 1), "it trained once"


def expect_all_or_nothing(loop: Loop, name: str) -> None:
    """A run whose command was killed: submitted, and then it trained to its end; or not, and then it never began."""
    run = eventually(f"{name} to be over", lambda: over(loop, name))
    if loop.began(name):
        expect(loop, name, "Complete", exit_code=0)
    else:
        assert run["reason"] == "NotSubmitted", run


def over(loop: Loop, name: str) -> dict[str, Any] | None:
    """The record of a run that is over, or that its command did not come to record."""
    run = loop.record(name)
    if run is None:
        return {"state": "Failed", "reason": "NotSubmitted"}
    return run if run["state"] in ("Complete", "Failed", "Deleted", "Lost") else None


KINDS = (
    well,
    ended_by_ctrl_c,
    with_a_kill_of_the_command,
    with_a_kill_of_the_control_plane,
    with_a_kill_of_both,
    badly,
    with_a_typo,
)


@pytest.mark.timeout(120 + 15 * RUNS)
def test_every_run_has_its_true_end_whatever_was_killed(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    loop = Loop(trainwright, tmp_path)
    checks = []
    for number in range(RUNS):
        kind = KINDS[number % len(KINDS)]
        checks.append(kind(loop, f"{kind.__name__.replace('_', '-')}-{number}"[-40:].strip("-")))
    for check in checks:
        check()
    listed: list[dict[str, Any]] = trainwright.parsed("runs", "-o", "json")
    assert not [run["id"] for run in listed if Path(run["directory"], "environment.json").exists()]
    trainwright("down")
    assert not processes_of(trainwright.directory)
    assert trainwright.parsed("runs", "-o", "json") == listed, "and `down` changed none of them"
    for run in listed:
        trainwright("runs", "delete", run["id"])  # no lock is left that this would wait for
