"""New work is accepted while the cluster is away: kept on disk, delivered once, refused in the server's words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trainwright as package
from commandline import CommandLine, command_line
from trainwright.api.wellknown import RUN
from trainwright.cli.failure import Failure
from trainwright.cli.run.submit import STARTED
from trainwright.runs.outbox import Entry, Outbox
from waiting import eventually

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  suspend: true
  runtimeRef: {{name: {runtime}}}
"""
TEAMS_RUNTIME = """\
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: teams, labels: {trainer.kubeflow.org/framework: plain}}
spec:
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {restartPolicy: Never, containers: [{name: node, image: none}]}}}
"""


def write(tmp_path: Path, name: str, runtime: str = "plain") -> str:
    file = tmp_path / f"{name}.yaml"
    file.write_text(JOB.format(name=name, runtime=runtime))
    return str(file)


def deliverers(directory: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if "submit" in words and str(directory) in words:
                found.append(int(entry.name))
    return found


def runs(trainwright: CommandLine) -> dict[str, Any]:
    return {run["name"]: run for run in trainwright.parsed("runs", "-o", "json")}


@pytest.mark.timeout(180)
def test_what_is_submitted_while_the_cluster_is_away_is_delivered_once(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    trainwright("up", "--detach")
    here = Path(write(tmp_path, "here", "teams, kind: TrainingRuntime"))
    here.write_text(here.read_text() + TEAMS_RUNTIME)
    assert "TrainJob here is created" in trainwright("submit", str(here))
    trainwright("submit")  # the namespace's runtimes are seen
    trainwright("submit", "-n", "kube-system")  # and not forgotten for another namespace's
    trainwright("down")
    try:
        for name, runtime in (("one", "plain"), ("two", "teams, kind: TrainingRuntime")):
            assert "kept: " in trainwright("submit", write(tmp_path, name, runtime))
        spec = {"suspend": True, "runtimeRef": {"name": "plain"}}
        package.submit({"metadata": {"name": "three"}, "spec": spec}, directory=str(trainwright.directory))
        refused = trainwright("submit", write(tmp_path, "wrong", "no-such-runtime"), code=1)
        assert "no-such-runtime" in refused, "judged by the runtimes last seen"
        waiting = Outbox(trainwright.directory).waiting()
        assert [entry.job["metadata"]["name"] for entry in waiting] == ["one", "two", "three"]
        assert all(
            (Outbox(trainwright.directory).path / entry.file).stat().st_mode & 0o777 == 0o600 for entry in waiting
        )
        assert {name: run["state"] for name, run in runs(trainwright).items() if name != "here"} == dict.fromkeys(
            ("one", "two", "three"), "Submitting"
        )
        for pid in deliverers(trainwright.directory):
            os.kill(pid, signal.SIGKILL)  # delivered all the same, by another start of the program
        # Whoever delivered "one" was killed before it could say so.
        trainwright("up", "--detach")
        again = waiting[0]
        trainwright("submit", "--quiet")
        Outbox(trainwright.directory).put(again)
        two = [trainwright.start("submit", "--quiet") for _ in range(2)]
        assert [(process.communicate(timeout=60), process.returncode)[1] for process in two] == [0, 0]
        assert Outbox(trainwright.directory).waiting() == []
        jobs = {job["metadata"]["name"]: job for job in trainwright.parsed("get", "-o", "json")["items"]}
        assert sorted(jobs) == ["here", "one", "three", "two"]
        for entry in waiting:
            assert jobs[entry.job["metadata"]["name"]]["metadata"]["annotations"][RUN] == entry.run
        uids = {name: job["metadata"]["uid"] for name, job in jobs.items()}
        Outbox(trainwright.directory).put(
            Entry(**{**_fields(again), "run": "one-other", "job": _of_another_run(again)})
        )
        assert "exists already in namespace default, of another run" in trainwright("submit", code=1)
        assert runs(trainwright)["one"]["uid"] == uids["one"]
    finally:
        for pid in deliverers(trainwright.directory):
            os.kill(pid, signal.SIGKILL)
        for process in STARTED:
            process.wait(10)


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def _of_another_run(entry: Entry) -> dict[str, Any]:
    metadata = {**entry.job["metadata"], "annotations": {RUN: "one-other"}}
    return {**entry.job, "metadata": metadata}


@pytest.mark.timeout(120)
def test_the_background_delivers_by_itself_when_the_cluster_is_back(tmp_path: Path) -> None:
    with command_line(tmp_path / "a cluster") as trainwright:
        trainwright("submit", write(tmp_path, "patient"))
        assert deliverers(trainwright.directory)
        trainwright("up", "--detach")
        eventually("it is delivered", lambda: not Outbox(trainwright.directory).waiting(), 40)
        eventually("and the process ends", lambda: not deliverers(trainwright.directory), 20)
        assert "patient" in trainwright("get")


def test_a_submission_without_a_name_is_refused_in_python(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"no metadata\.name"):
        package.submit({"spec": {}}, directory=str(tmp_path))


PUT = """
import sys
from pathlib import Path
from trainwright.cli.run.submit import STARTED
from trainwright.runs.outbox import Entry, Outbox
number = 0
while True:
    number += 1
    entry = Entry(run=f"run-{number}", submitted="", target="local", namespace="n", job={"n": number})
    Outbox(Path(sys.argv[1])).put(entry)
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_whole_submissions_and_all_that_were_accepted(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", PUT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    first = [writer.stdout.readline() for _ in range(20)]
    writer.kill()
    output, _ = writer.communicate()
    accepted = [int(line) for line in ("".join(first) + output).split()]
    waiting = [entry.job["n"] for entry in Outbox(tmp_path).waiting()]
    assert accepted
    assert waiting[: len(accepted)] == accepted
    assert len(waiting) - len(accepted) in (0, 1)
    assert all(json.loads(file.read_text()) for file in (tmp_path / "outbox").glob("*.json"))
