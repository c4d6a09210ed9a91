"""A cluster's directory is private, belongs to one control plane at a time, and knows whether that one lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright.cli.clusters.directory import LARGEST_LOG, ClusterDirectory, default_directory
from trainwright.cli.failure import Failure
from trainwright.cli.machine.up import stop
from trainwright.embedded.apiserver.access.tls import write_private

HOLDER = """
import sys, time, pathlib
from trainwright.cli.clusters.directory import ClusterDirectory
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


@pytest.mark.parametrize("name", ["thesis.tex", ".bashrc", "kubeconfig"])
def test_a_directory_with_somebodys_files_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / name).write_text("mine")
    with pytest.raises(Failure, match="is no cluster's directory"):
        ClusterDirectory(tmp_path).create()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["state.db", "control-plane.lock", "runs", "trainwright-cluster"])
def test_a_directory_of_a_cluster_is_taken_whoever_made_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    ClusterDirectory(tmp_path).create()
    (tmp_path / "data.csv").write_text("what a user puts beside it later")
    ClusterDirectory(tmp_path).create()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(Failure, match="belongs to another user"):
        ClusterDirectory(tmp_path).create()
    os.chown(tmp_path, 0, 0)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(Failure, match="belongs to another user"):
        ClusterDirectory(link).create()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    for planted in ("kubeconfig.new", ".kubeconfig.new"):
        (tmp_path / planted).symlink_to(target)
    write_private(tmp_path / "kubeconfig", "secret")
    assert target.read_text() == "precious"
    assert (tmp_path / "kubeconfig").read_text() == "secret"
    assert not (tmp_path / "kubeconfig").is_symlink()


def test_a_pid_that_does_not_hold_the_lock_is_not_signalled(tmp_path: Path) -> None:
    cluster = ClusterDirectory(tmp_path)
    cluster.create()
    with (
        subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder,
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander,
    ):
        assert holder.stdout is not None
        holder.stdout.readline()
        assert cluster.holds(holder.pid)
        cluster.pid_file.write_text(f"{bystander.pid}\n")
        with pytest.raises(Failure, match="it is not signalled"):
            stop(cluster)
        assert bystander.poll() is None
        bystander.kill()
        holder.kill()


def test_the_log_is_rotated_when_it_is_large(tmp_path: Path) -> None:
    cluster = ClusterDirectory(tmp_path)
    cluster.log_file.write_bytes(b"x" * 100)
    cluster.rotate_log()
    assert cluster.log_file.stat().st_size == 100
    with cluster.log_file.open("ab") as appending:
        appending.write(b"x" * LARGEST_LOG)
        appending.flush()
        cluster.rotate_log()
        appending.write(b"goes on")
    assert cluster.log_file.read_bytes() == b"goes on"
    assert (tmp_path / "control-plane.log.1").stat().st_size == LARGEST_LOG + 100


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
