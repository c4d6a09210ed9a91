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
from commandline import COMMAND, CommandLine, command_line
from trainwright.api.wellknown import RUN
from trainwright.cli.failure import Failure
from trainwright.cli.run.handingover import STARTED
from trainwright.runs.outbox import Entry, Outbox
from trainwright.testing.rest import Rest
from waiting import eventually

JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
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


class Away:
    """Another cluster, known by a kubeconfig alone, that goes away and comes back at the same address."""

    def __init__(self, trainwright: CommandLine, folder: Path) -> None:
        self.cluster = trainwright
        self.kubeconfig = folder / "team.kubeconfig"
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "train.py").write_text("import os\nprint('token', os.environ['TOKEN'])\n")
        self.records = folder / "records"
        trainwright("up", "--detach")
        self.kubeconfig.write_text(trainwright.kubeconfig.read_text())

    def __call__(self, *words: str, code: int = 0) -> str:
        cluster = () if words[0] == "runs" else ("--kubeconfig", str(self.kubeconfig))
        command = [*COMMAND, *words[:1], *cluster, "--dir", str(self.records), *words[1:]]
        done = subprocess.run(command, cwd=self.project, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def kill_deliverers(self) -> None:
        for pid in deliverers(self.records):
            os.kill(pid, signal.SIGKILL)

    def get(self, path: str) -> Any:
        return self.rest().get(path)

    def rest(self) -> Rest:
        return Rest.from_kubeconfig(self.cluster.kubeconfig, self.project.parent / "scratch")


@pytest.mark.timeout(240)
def test_a_script_is_accepted_by_run_detach_and_trains_when_the_cluster_is_back(
    trainwright: CommandLine, tmp_path: Path
) -> None:
    away = Away(trainwright, tmp_path)
    away("run", "--detach", "--name", "again", "--env", "TOKEN=0", "train.py")
    away("wait", "again", "--timeout", "60s")
    trainwright("down")
    try:
        assert "--detach" in away("run", "train.py", code=1), "what to do is said"
        wrong = away("run", "--detach", "--runtime", "none-such", "train.py", code=1)
        assert 'no runtime named "none-such" has been seen there' in wrong
        kept = away("run", "--detach", "--name", "again", "--env", "TOKEN=1", "--retries", "1", "train.py")
        assert "Kept" in kept
        away("run", "--detach", "--name", "second", "--env", "TOKEN=2", "train.py")
        away("run", "--detach", "--name", "unwanted", "--env", "TOKEN=3", "train.py")
        outbox = Outbox(away.records)
        first, *_ = waiting = outbox.waiting()
        assert [entry.job["metadata"]["name"] for entry in waiting] == ["again", "second", "unwanted"]
        listed = away("runs")
        assert listed.count("not delivered yet") == 3
        assert first.submitted in away("runs", "describe", first.run), "since when"
        assert "add --force, and it never is" in away("runs", "delete", waiting[2].run, code=1)
        away("runs", "delete", "--force", waiting[2].run)
        away.kill_deliverers()
        trainwright("up", "--detach")
        away("submit", "--quiet")
        assert outbox.waiting() == []
        for name in ("again", "second"):
            away("wait", name, "--timeout", "60s")
        assert "token 1" in away("logs", "again"), "the finished one of the same name made room"
        jobs = {item["metadata"]["name"]: item for item in away.get(JOBS)["items"]}
        assert sorted(jobs) == ["again", "second"]
        outbox.put(first)  # whoever delivered it was killed before it could say so
        away("submit", "--quiet")
        assert away.get(f"{JOBS}/again")["metadata"]["uid"] == jobs["again"]["metadata"]["uid"]
        for kind in ("secrets", "configmaps"):
            item = away.get(f"/api/v1/namespaces/default/{kind}/{first.run}")
            assert [owner["uid"] for owner in item["metadata"]["ownerReferences"]] == [jobs["again"]["metadata"]["uid"]]
    finally:
        away.kill_deliverers()


PUT = """
import sys
from pathlib import Path
from trainwright.cli.run.handingover import STARTED
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
