"""A directory, a home and a local cluster in which the command lines of the documentation run as they are written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from commandline import processes_of
from docs.commandlines import ROOT
from trainwright.cli.clusters.directory import ClusterDirectory

PLACEHOLDERS = {"NAME…": "mnist", "NAME": "mnist", "ID…": "mnist", "ID": "mnist", "JOB": "mnist", "FILE": "job.yaml"}
ENDLESS = (r".* -w\b.*", r".*--watch\b.*", r"trainwright port-forward .*", r"trainwright up(?!.*--detach).*")
"""Lines that go on until Ctrl-C: they get one."""
CODES = {
    r"trainwright diff .*": (0, 1),
    r"trainwright doctor --context .*": (1,),  # the local control plane, known by another name, has no Deployments
    r"trainwright logs .*--previous.*": (1,),  # there is no earlier attempt
}
RUNNING = (r"trainwright (suspend|exec|top|port-forward|cp)\b.*", r"trainwright wait .*--for Running.*")
"""Lines that want a TrainJob which runs."""

TRAIN = """\
import argparse, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
print("training with", parser.parse_args().lr)
"""
JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}, labels: {{team: a}}}}
spec:
  runtimeRef: {{name: plain}}
  suspend: {suspend}
  trainer: {{numNodes: {nodes}, command: [sh, -c, "{command}"]}}
"""


def job(name: str, *, command: str = "echo hello", nodes: int = 2, suspend: str = "false") -> str:
    return JOB.format(name=name, nodes=nodes, command=command, suspend=suspend)


class Stage:
    def __init__(self, directory: Path, kubectl: Path | None) -> None:
        self.directory = directory
        self.state = ClusterDirectory(directory / "state" / "trainwright")
        programs = [str(Path(sys.executable).parent), *([str(kubectl.parent)] if kubectl else [])]
        self.environment = {
            "HOME": str(directory),
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CACHE_HOME": str(directory / "cache"),
            "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
        }
        self._mnist = ""
        """What the TrainJob of the examples does at present: nothing, Complete, Running or Suspended."""
        self._write_files()

    def _write_files(self) -> None:
        files = {
            "train.py": TRAIN,
            "train.sh": "#!/bin/sh\necho training $*\n",
            "package/__init__.py": "",
            "package/train.py": TRAIN,
            "job.yaml": job("from-file"),
            "old.yaml": job("from-file", nodes=1),
            "update.yaml": "metadata: {labels: {team: b}}\n",
            "runtime.yaml": (ROOT / "manifests/runtimes/plain.yaml").read_text().replace("name: plain", "name: mine"),
            "data/mnist/part-0": "numbers",
        }
        for name, text in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.directory / "train.sh").chmod(0o755)
        for name in ("examples", "manifests"):
            if not (self.directory / name).exists():
                (self.directory / name).symlink_to(ROOT / name)

    def prepare(self, line: str) -> None:
        """Brings about what a line takes for granted."""
        if line.startswith("trainwright up"):
            self._quietly("trainwright down --force")
            self._mnist = ""
        elif self.state.running_pid() is None:
            self._quietly("trainwright up --detach")
            config = self.directory / ".kube" / "config"
            config.parent.mkdir(exist_ok=True)
            config.write_text(self.state.kubeconfig.read_text().replace("trainwright\n", "prod\n"))
        if line.startswith("trainwright init"):
            for name in ("trainjob.yaml", "job.yaml"):
                (self.directory / name).unlink(missing_ok=True)
        if line == "trainwright logs -f torch-ddp":
            self._create("torch-ddp", job("torch-ddp"))
        elif "torch-ddp" in line:
            self._quietly("trainwright delete torch-ddp --ignore-not-found -q")
        if "cifar" in line:
            self._create("cifar", job("cifar"))
        if "mnist" in line and "file://" not in line:
            self._prepare_mnist(line)

    def _prepare_mnist(self, line: str) -> None:
        runs = any(re.fullmatch(pattern, line) for pattern in RUNNING)
        wanted = "Suspended" if line.startswith("trainwright resume") else "Running" if runs else "Complete"
        if self._mnist != wanted:
            command, suspend = "echo hello" if wanted == "Complete" else "sleep 60", wanted == "Suspended"
            self._create("mnist", job("mnist", command=command, suspend="true" if suspend else "false"))
            self._quietly(f"trainwright wait mnist --for {wanted} --timeout 60")
        acts = re.match(r"trainwright (suspend|resume|delete)", line)
        self._mnist = "" if acts else wanted

    def _create(self, name: str, text: str) -> None:
        self._quietly(f"trainwright delete {name} --ignore-not-found -q")
        (self.directory / f".{name}.yaml").write_text(text)
        self._quietly(f"trainwright run .{name}.yaml --detach")

    def _quietly(self, line: str) -> None:
        done = self._bash(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    def run(self, line: str) -> None:
        """Runs a line as a reader would, and fails where it does not do what it says."""
        for placeholder, value in PLACEHOLDERS.items():
            line = re.sub(rf"(?<![\w-]){re.escape(placeholder)}(?![\w…])", value, line)
        if line == "trainwright runs delete mnist":
            line = f"trainwright runs delete {self._newest_run()}"
        line = line.replace("file:///data", f"file://{self.directory}/data")
        self.prepare(line)
        endless = any(re.fullmatch(pattern, line) for pattern in ENDLESS)
        done = self._bash(f"timeout --signal INT 3 {line}" if endless else line)
        expected = next((codes for pattern, codes in CODES.items() if re.fullmatch(pattern, line)), (0,))
        output = done.stdout + done.stderr
        assert done.returncode in ((0, 124, 130) if endless else expected), f"{line}: exit {done.returncode}\n{output}"
        assert "Traceback" not in output
        if line.startswith("trainwright init"):
            self._write_files()

    def _newest_run(self) -> str:
        self._prepare_mnist("trainwright get mnist")
        runs = json.loads(self._bash("trainwright runs -o json").stdout)
        return str(next(run["id"] for run in runs if run["name"] == "mnist"))

    def _bash(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env={**self.environment, **({"KUBECONFIG": str(self.state.kubeconfig)} if "kubectl" in line else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def close(self) -> None:
        self._bash("trainwright down --force")
        left = processes_of(self.directory)
        assert not left, f"processes were left over: {left}"
