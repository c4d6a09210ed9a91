"""Elastic training with real torchrun on the local cluster: nodes join, leave and are killed while a model trains."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commandline import CommandLine, runtime
from training.frameworks import SCRIPTS, environment
from waiting import eventually

EVERY = 5
SECONDS = 120.0
JOB = """\
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: grow
spec:
  runtimeRef:
    kind: TrainingRuntime
    name: torch-elastic
  trainer:
    numProcPerNode: 1
    command: {command}
"""


class Training:
    """One elastic TrainJob that writes what it does into a directory."""

    def __init__(
        self,
        trainwright: CommandLine,
        home: Path,
        command: list[str],
        restarts: int = 10,
        most: int = 4,
        metrics: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.trainwright, self.home = trainwright, home
        home.mkdir()
        elastic = {"minNodes": 2, "maxNodes": most, "maxRestarts": restarts, "metrics": [*metrics]}
        job = JOB.format(command=json.dumps(command))
        (home / "job.yaml").write_text(f"{runtime('torch-elastic', {'torch': {'elasticPolicy': elastic}})}\n{job}")
        trainwright("up", "--detach", env=environment(""))
        trainwright("run", str(home / "job.yaml"), "--detach")

    @property
    def steps(self) -> list[dict[str, Any]]:
        file = self.home / "steps.jsonl"
        whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def job(self) -> Any:
        return self.trainwright.parsed("get", "grow", "-o", "json")

    def pods(self) -> dict[str, str]:
        """The uid of the running pod of each index."""
        listed = self.trainwright.parsed("get", "pods", "-o", "json")["items"]
        return {
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: pod["metadata"]["uid"]
            for pod in listed
            if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
        }

    def trains_on(self, world: int, after: int = 0) -> int:
        """Waits until so many ranks have trained for a few steps. Returns how many steps there were then."""
        eventually(
            f"{world} nodes train",
            lambda: len(self.steps) > after + 3 and all(line["world"] == world for line in self.steps[-3:]),
            SECONDS,
        )
        return len(self.steps)

    def kill(self, index: int) -> None:
        """SIGKILL for the torchrun of one node."""
        [pid] = agents(self.home, index)
        os.kill(pid, signal.SIGKILL)

    def ends_when_it_has_learned(self) -> None:
        """However quickly nodes come and go, there are steps enough to learn something."""
        eventually("the loss has halved", lambda: self.steps[-1]["loss"] < self.steps[0]["loss"] / 2, SECONDS)
        (self.home / "enough").touch()

    def check_steps(self) -> None:
        """Every round goes on where the last checkpoint was, and the loss falls all the way."""
        steps = self.steps
        for before, line in itertools.pairwise(steps):
            last_checkpoint = (before["step"] + 1) // EVERY * EVERY
            assert line["step"] in (before["step"] + 1, last_checkpoint), (before, line)
        last = {line["step"]: line["loss"] for line in steps}
        losses = [last[step] for step in sorted(last)]
        assert losses == sorted(losses, reverse=True), "the loss went on falling"
        assert losses[-1] < losses[0] / 2


def agents(mark: Path, index: int) -> list[int]:
    """The torchrun of a node; the keeper that started it has another command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            is_agent = any(word.endswith("/torchrun") for word in words[:2]) and str(mark) in words
            if is_agent and f"JOB_COMPLETION_INDEX={index}".encode() in variables:
                found.append(int(entry.name))
    return found


@pytest.mark.timeout(600)
def test_nodes_join_and_leave_while_a_model_trains(trainwright: CommandLine, tmp_path: Path) -> None:
    home = tmp_path / "work"
    training = Training(trainwright, home, ["torchrun", str(SCRIPTS / "elastic_line.py"), str(home)])
    seen = training.trains_on(2)  # the TrainJob does not say how many: the fewest
    eventually("the operator has said so", lambda: training.job["spec"]["trainer"].get("numNodes") == 2)
    before = training.pods()
    refused = trainwright("scale", "grow", "--nodes", "1", code=1)
    assert "cannot have 1 nodes: it trains on 2 to 4" in refused
    for nodes in (4, 2, 3):
        trainwright("scale", "grow", "--nodes", str(nodes))
        seen = training.trains_on(nodes, seen)
        pods = training.pods()
        assert len(pods) == nodes
        assert {index: pods[index] for index in before} == before, "nobody else was restarted"
    assert "training on 3 nodes (between 2 and 4)" in trainwright("get", "grow")
    reasons = trainwright("events", "grow")
    assert "NodesJoined" in reasons
    assert "NodesLeft" in reasons
    training.ends_when_it_has_learned()
    assert "Complete" in trainwright("wait", "grow", "--timeout", "100s", seconds=120)
    training.check_steps()
    assert training.job["status"]["elastic"]["wantedNodes"] == 3
    assert "has ended (Complete)" in trainwright("scale", "grow", "--nodes", "2", code=1)


@pytest.mark.timeout(600)
def test_a_killed_node_comes_back_and_node_0_takes_all_agents_with_it(trainwright: CommandLine, tmp_path: Path) -> None:
    home = tmp_path / "work"
    training = Training(trainwright, home, ["torchrun", str(SCRIPTS / "elastic_line.py"), str(home)])
    training.trains_on(2)
    trainwright("scale", "grow", "--nodes", "3")
    seen = training.trains_on(3)
    before = training.pods()
    training.kill(1)

    def is_replaced() -> bool:
        pods = training.pods()  # once: between two looks it may be gone
        return len(pods) == 3 and pods.get("1") not in (None, before["1"])

    eventually("a node takes its place", is_replaced, 90)
    seen = training.trains_on(3, len(training.steps))
    after = training.pods()
    assert {after["0"], after["2"]} == {before["0"], before["2"]}, "the other agents went on"
    assert "NodesLost" in trainwright("events", "grow")
    training.kill(0)
    eventually("all agents are new", lambda: not set(training.pods().values()) & set(after.values()), 120)
    training.trains_on(3, max(seen, len(training.steps)))
    training.ends_when_it_has_learned()
    assert "Complete" in trainwright("wait", "grow", "--timeout", "100s", seconds=120)
    training.check_steps()


@pytest.mark.timeout(300)
def test_a_script_that_always_fails_ends_the_job_and_says_why(trainwright: CommandLine, tmp_path: Path) -> None:
    home = tmp_path / "work"
    script = tmp_path / "broken.py"
    script.write_text("raise ValueError('no such column')\n")
    Training(trainwright, home, ["torchrun", str(script), str(home)], restarts=0)
    began = time.monotonic()
    trainwright("wait", "grow", "--timeout", "200s", code=1, seconds=220)
    assert time.monotonic() - began < 100
    assert "no such column" in trainwright("why", "grow")


@pytest.mark.timeout(400)
def test_the_local_autoscaler_adds_a_node_while_a_model_trains(trainwright: CommandLine, tmp_path: Path) -> None:
    home = tmp_path / "work"
    target = {"type": "AverageValue", "averageValue": "20Mi"}  # which every torchrun is above
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    command = ["torchrun", str(SCRIPTS / "elastic_line.py"), str(home)]
    training = Training(trainwright, home, command, most=3, metrics=[metric])
    eventually("two nodes run", lambda: len(training.pods()) >= 2, SECONDS)
    before = training.pods()
    training.trains_on(3)
    pods = training.pods()
    assert {index: pods[index] for index in ("0", "1")} == {index: before[index] for index in ("0", "1")}
    assert training.job["spec"]["trainer"]["numNodes"] == 3
    first = training.steps[0]["loss"]
    eventually("it has learned", lambda: training.steps[-1]["loss"] < first / 2, SECONDS)
    (home / "enough").touch()
    assert "Complete" in trainwright("wait", "grow", "--timeout", "100s", seconds=120)
    training.check_steps()
