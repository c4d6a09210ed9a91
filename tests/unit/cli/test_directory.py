"""A cluster's directory is private, belongs to one control plane at a time, and knows whether that one lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright.cli.directory import ClusterDirectory, default_directory
from trainwright.cli.failure import Failure

HOLDER = """
import sys, time, pathlib
from trainwright.cli.directory import ClusterDirectory
with ClusterDirectory(pathlib.Path(sys.argv[1])).held():
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_default_is_in_the_xdg_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")
    assert default_directory() == Path("/somewhere/state/trainwright")
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/invalid")
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_directory() == Path("/home/ada/.local/state/trainwright")


def test_the_directory_is_its_owners_alone(tmp_path: Path) -> None:
    cluster = ClusterDirectory(tmp_path / "a" / "b")
    cluster.create()
    assert cluster.path.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="choose another with --dir"):
        ClusterDirectory(tmp_path / "file" / "x").create()


def test_a_control_plane_is_seen_while_it_lives_and_only_then(tmp_path: Path) -> None:
    cluster = ClusterDirectory(tmp_path)
    cluster.create()
    assert cluster.running_pid() is None
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert cluster.running_pid() == holder.pid
        with pytest.raises(Failure, match=f"already running on .* \\(pid {holder.pid}\\)"), cluster.held():
            pass
        holder.kill()
        holder.wait()
    assert cluster.pid_file.exists(), "kill -9 leaves the file behind"
    assert cluster.running_pid() is None, "but the lock tells the truth"
    with cluster.held():
        assert cluster.running_pid() == os.getpid()
