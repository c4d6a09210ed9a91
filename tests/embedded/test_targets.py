"""Commands act on the cluster that the user means, and an operator on no cluster that has one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from commandline import COMMAND, CommandLine, plain_job


def typed(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command as typed, with these variables set."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_kubeconfig_of_another_cluster_is_used_and_named_first(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    elsewhere = tmp_path / "team.kubeconfig"  # the same server, known by a file that is not in its directory
    elsewhere.write_text(trainwright.kubeconfig.read_text())
    job = tmp_path / "job.yaml"
    job.write_text(plain_job("afar", "print('hello from afar')"))
    done = typed("run", str(job), KUBECONFIG=str(elsewhere), XDG_STATE_HOME=str(tmp_path / "state"))
    assert done.returncode == 0, done.stderr
    assert "[rank 0] hello from afar" in done.stdout
    first = done.stderr.splitlines()[0]
    assert first.startswith("trainwright: on context ")
    assert "at https://127.0.0.1:" in first
    assert "afar" in trainwright("get"), "it ran on the cluster of the file"
    by_flag = typed("get", "--kubeconfig", str(elsewhere))
    assert "afar" in by_flag.stdout
    assert by_flag.stderr.splitlines()[0] == first


def test_dir_wins_over_the_variable_and_nothing_is_said(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    done = typed("get", "--dir", str(trainwright.directory), KUBECONFIG=str(tmp_path / "no-such-file"))
    assert (done.returncode, done.stderr) == (0, "")
    own = typed("get", KUBECONFIG=str(trainwright.kubeconfig))
    assert (own.returncode, own.stderr) == (0, ""), "the exported kubeconfig of a local cluster is that local cluster"


def test_a_second_operator_does_not_break_the_local_cluster(trainwright: CommandLine, tmp_path: Path) -> None:
    trainwright("up", "--detach")
    refused = typed("operator", KUBECONFIG=str(trainwright.kubeconfig))
    assert refused.returncode == 1
    assert "a local cluster, which runs an operator of its own" in refused.stderr
    assert "--take-over" in refused.stderr
    job = tmp_path / "job.yaml"
    job.write_text(plain_job("after", "print('still works')"))
    assert "still works" in trainwright("run", str(job))
