"""A pod that prints nothing is called quiet after its time, with the stacks of its processes, until it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwright.api.times import rfc3339
from trainwright.embedded.node.pods.quiet import QuietPods
from trainwright.embedded.node.pods.record import ContainerRecord, PodDirectory, PodRecord
from trainwright.embedded.node.pods.stacks import Stacks
from trainwright.schema.jsonobject import Json
from waiting import eventually

SLEEPS = """import os, time
from trainwright import {0}
def load():
    time.sleep(600)
open({1!r}, 'w').close()
load()
"""


def record(began: float) -> PodRecord:
    container: ContainerRecord = {
        "state": {"running": {"startedAt": rfc3339(began)}},
        "lastState": {},
        "restartCount": 0,
        "ready": True,
    }
    return {
        "uid": "u",
        "supervisor": [0, "", ""],
        "startedAt": rfc3339(began),
        "initContainers": {},
        "containers": {"node": container},
        "done": False,
    }


def pod(after: str | None = None) -> Json:
    annotations = {"trainwright.dev/hang-after": after} if after is not None else {}
    return {"metadata": {"name": "p", "annotations": annotations}, "spec": {}, "status": {}}


def test_a_pod_is_quiet_after_its_time_and_until_its_next_line(tmp_path: Path) -> None:
    directory = PodDirectory(tmp_path / "u")
    log = directory.log("node", 0)
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    now = log.stat().st_mtime
    clock = [now]
    quiet = QuietPods(60, lambda: clock[0])
    seen = record(now)
    condition, again = quiet.look(pod(), directory, seen)
    assert condition is None
    assert again == pytest.approx(60)
    clock[0] = now + 61
    condition, again = quiet.look(pod(), directory, seen)
    assert condition is not None
    assert condition[1] is True
    assert condition[2]["message"].startswith("no output for 60 s")
    assert again < 10
    os.utime(log, (now + 62, now + 62))
    clock[0] = now + 63
    condition, _ = quiet.look(pod(), directory, seen)
    assert condition is not None
    assert condition[1] is False, "it goes on"


@pytest.mark.parametrize(("after", "is_quiet"), [("0", False), ("5", True), ("500", False), ("soon", True)])
def test_the_pod_may_ask_for_another_time_or_for_none(tmp_path: Path, after: str, is_quiet: bool) -> None:
    quiet = QuietPods(60, lambda: time.time() + 100)
    condition, _ = quiet.look(pod(after), PodDirectory(tmp_path / "u"), record(time.time()))
    assert (condition is not None and condition[1]) is is_quiet


def child(tmp_path: Path, imported: str, output: Path) -> subprocess.Popen[bytes]:
    """A rank that sleeps in load(), and whose standard error is this file."""
    started = tmp_path / "started"
    env = {**os.environ, "RANK": "3", "TRAINWRIGHT_POD": "u"}
    with output.open("wb") as errors:
        program = [sys.executable, "-c", SLEEPS.format(imported, str(started))]
        process = subprocess.Popen(program, env=env, stderr=errors)
    eventually("it sleeps", started.exists)
    return process


def as_logged(output: Path) -> bytes:
    """The output as the node's log has it."""
    return b"".join(b"2026-01-01T00:00:00Z stderr F " + line + b"\n" for line in output.read_bytes().splitlines())


def test_py_spy_shows_where_a_rank_is(tmp_path: Path) -> None:
    output = tmp_path / "output"
    process = child(tmp_path, "version", output)
    try:
        found = Stacks().of({**record(0), "supervisor": [os.getpid(), "", ""]}, output.read_bytes)
        assert any("rank 3" in line and "load (<string>:4)" in line for line in found.lines()), found.lines()
    finally:
        process.kill()
        process.wait()


def test_without_py_spy_code_that_reports_progress_prints_its_stack_itself(tmp_path: Path) -> None:
    output = tmp_path / "output"
    process = child(tmp_path, "progress", output)
    try:
        found = Stacks(program="").of({**record(0), "supervisor": [os.getpid(), "", ""]}, lambda: as_logged(output))
        assert found.may_have_printed
        assert any("rank 3" in line and "load (<string>:4)" in line for line in found.lines()), found.lines()
        assert process.poll() is None, "it lives on"
    finally:
        process.kill()
        process.wait()


def test_a_process_that_knows_nothing_of_the_signal_is_left_alone(tmp_path: Path) -> None:
    output = tmp_path / "output"
    process = child(tmp_path, "version", output)
    try:
        found = Stacks(program="").of({**record(0), "supervisor": [os.getpid(), "", ""]}, output.read_bytes)
        assert found.lines() == ["no stacks: py-spy is not installed (pip install py-spy)"]
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
