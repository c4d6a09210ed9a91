"""The `trainwright` command as a user types it, against a cluster in a directory of its own.

Everything here runs real processes: the command, the control plane it starts and the pods' supervisors.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = [os.environ.get("TRAINWRIGHT_PYTHON", sys.executable), "-m", "trainwright.cli.main"]
"""Another environment than the test's own may hold Trainwright, as in the tests of the Kubeflow SDK."""


OURS = re.compile(r"^Traceback", re.MULTILINE)
"""A traceback of the command itself; those of ranks have the rank in front."""


class CommandLine:
    """`trainwright …` with `--dir` filled in. `behind` are words of another command that starts it."""

    def __init__(self, directory: Path, behind: Sequence[str] = ()) -> None:
        self.directory = directory
        self.behind = behind

    def __call__(
        self,
        *arguments: str,
        code: int | None = 0,
        stdin: str = "",
        seconds: float = 90,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run to the end and return what it printed; `code` is the exit code it must have, None for any. `env` is
        added to the test's own environment.
        """
        done = subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        output = done.stdout + done.stderr
        assert not OURS.search(output), output
        assert code is None or done.returncode == code, f"exit {done.returncode}, not {code}:\n{output}"
        return output

    def parsed(self, *arguments: str) -> Any:
        """Run to the end and return the JSON on its standard output. Remarks go to standard error."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=90, check=True)
        return json.loads(done.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it and return at once; its output is a pipe."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def command(self, *arguments: str) -> list[str]:
        name, *rest = arguments
        offline = name in ("render", "validate", "explain", "plugins")
        return [*self.behind, *COMMAND, name, *([] if offline else ["--dir", str(self.directory)]), *rest]

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def pid(self) -> int:
        return int((self.directory / "pid").read_text())

    def kill_control_plane(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


ASKING = frozenset(
    ("get", "describe", "events", "wait", "why", "logs", "runs", "status", "suspend", "resume", "delete", "diff", "top")
)


class InProcess(CommandLine):
    """The command line, without a new process for each command that only asks: many tests do little else."""

    def __call__(self, *arguments: str, code: int | None = 0, stdin: str = "", **others: Any) -> str:
        if arguments[0] not in ASKING or others:
            return super().__call__(*arguments, code=code, stdin=stdin, **others)
        found, out, err = self._here(arguments)
        assert code is None or found == code, f"exit {found}, not {code}:\n{out}{err}"
        return out + err

    def parsed(self, *arguments: str) -> Any:
        return json.loads(self._here(arguments)[1])

    def _here(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        from trainwright.cli.main import main  # not where another environment holds Trainwright

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(self.command(*arguments)[len(COMMAND) :])
            except SystemExit as end:
                code = int(end.code or 0)
        return code, out.getvalue(), err.getvalue()


@contextmanager
def in_process(directory: Path) -> Iterator[CommandLine]:
    """As `command_line`, with commands that only ask in this process."""
    with command_line(directory):
        yield InProcess(directory)


@contextmanager
def command_line(directory: Path, behind: Sequence[str] = ()) -> Iterator[CommandLine]:
    """A command line; at the end its cluster is taken down, and a process that is left over fails the test."""
    trainwright = CommandLine(directory, behind)
    try:
        yield trainwright
    finally:
        trainwright("down", "--force", code=None)
        left = processes_of(directory)
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
    assert not left, f"processes were left over: {left}"


def processes_of(directory: Path) -> list[tuple[int, str]]:
    """The live processes that name this directory in their command line or run in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            where = os.readlink(entry / "cwd")
        except OSError:
            continue
        if line and (str(directory) in line or where.startswith(str(directory))):
            found.append((int(entry.name), line))
    return found


def processes_of_pods(directory: Path) -> list[str]:
    """Those that are neither the control plane nor a child of it: the nursery has the command line of supervisors."""
    found = processes_of(directory)
    planes = {pid for pid, line in found if "trainwright.cli.machine.controlplane" in line}
    return [line for pid, line in found if pid not in planes and _parent(pid) not in planes]


def _parent(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("PPid:")[2].split()[0])


def runtime(name: str, policy: Mapping[str, object]) -> str:
    """A TrainingRuntime with this `mlPolicy`, whose pods are not tried again."""
    return f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: {name}
spec:
  mlPolicy: {json.dumps(policy)}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: trainer
            spec:
              backoffLimit: 0
              template:
                spec:
                  restartPolicy: Never
                  containers:
                    - name: node
                      image: python"""


def plain_job(name: str, script: str, nodes: int = 1, **spec: object) -> str:
    """A TrainJob whose nodes each run a Python script, with a runtime of its own that knows no framework."""
    body = textwrap.indent(textwrap.dedent(script).strip(), " " * 8)
    more = "".join(f"  {key}: {value}\n" for key, value in spec.items())
    return f"""\
{runtime(f"{name}-runtime", {"numNodes": 1})}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: {name}
spec:
  runtimeRef:
    kind: TrainingRuntime
    name: {name}-runtime
{more}  trainer:
    numNodes: {nodes}
    command: [python3, -u, -c]
    args:
      - |
{body}
"""
