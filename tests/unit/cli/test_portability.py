"""What needs no Linux runs without it: the offline commands, and every command on another cluster.

Each command runs in a process from which the modules and functions that only Unix has are hidden. What it cannot do
there, it says.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver_process import ApiServerProcess

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "torch-ddp" / "trainjob.yaml")

WITHOUT_UNIX = """
import asyncio, os, signal, sys

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop"}
FUNCTIONS = "fork geteuid getuid getpgid killpg pidfd_open pread pwrite setsid O_CLOEXEC O_NOFOLLOW O_NONBLOCK".split()

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def not_here(self, *_):
    raise NotImplementedError

sys.meta_path.insert(0, Hidden())
for name in MODULES:
    sys.modules.pop(name, None)
for name in FUNCTIONS:
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGHUP, signal.SIGKILL
asyncio.SelectorEventLoop.add_signal_handler = not_here

from trainwright.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, *arguments],
        capture_output=True,
        text=True,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": "src"},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--version"], "trainwright "),
        (["render", "-f", EXAMPLE], "kind: JobSet"),
        (["validate", "-f", EXAMPLE], "admitted"),
        (["explain", "-f", EXAMPLE], "← "),
        (["diff", EXAMPLE, "--against", EXAMPLE], ""),
        (["init", "plain", "-"], "kind: TrainJob"),
        (["completion", "bash"], "complete -o filenames -F _trainwright trainwright"),
        (["plugins"], "JobSet"),
        (["runs"], "no runs"),
        (["run", "--dry-run", "--nodes", "2", "--", "python", "-c", "pass"], "kind: TrainJob"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_that_needs_no_cluster_runs(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run(*arguments, home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


@pytest.mark.parametrize("arguments", [["up", "--detach"], ["run", EXAMPLE], ["run", "--", "python", "-c", "pass"]])
def test_a_local_cluster_is_refused_with_the_way_out(tmp_path: Path, arguments: list[str]) -> None:
    done = run(*arguments, home=tmp_path)
    assert done.returncode == 1
    assert "need Linux" in done.stderr
    assert "--context" in done.stderr


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcess]:
    """A cluster somewhere: to the command line it is not the local one."""
    server = ApiServerProcess(tmp_path_factory.mktemp("elsewhere") / "state")
    server.start()
    yield server
    server.stop()


def test_another_cluster_is_used(tmp_path: Path, elsewhere: ApiServerProcess) -> None:
    kubeconfig = str(elsewhere.directory / "kubeconfig")
    pod = {"spec": {"containers": [{"name": "node", "image": "none"}]}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-distributed", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pod}}}]}},
        },
    }
    code, answer = elsewhere.request("POST", "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes", runtime)
    assert code == 201, answer

    def here(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run(*arguments, "--kubeconfig", kubeconfig, home=tmp_path)
        assert done.returncode == 0, done.stderr
        return done

    here("run", EXAMPLE, "--detach")
    assert "torch-ddp" in here("get").stdout
    here("delete", "torch-ddp")
    assert "torch-ddp" not in here("get").stdout
