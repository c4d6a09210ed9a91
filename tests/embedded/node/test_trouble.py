"""What running pods survive: a full disk, damaged files; and what ends a supervisor that hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from embedded.node.cluster import Cluster, pod, running_cluster
from embedded.node.machine import PROBED, Machine, processes_marked, supervisor_pid, terminated
from trainwright.api.resources import PODS
from trainwright.client import DeleteOptions
from trainwright.embedded.node.pods import directories
from trainwright.embedded.node.pods.directories import PodDirectories
from trainwright.embedded.node.pods.record import PodDirectory
from trainwright.embedded.node.supervision.crilog import LogFile
from waiting import until

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path / "state") as running:
        yield running


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a disk of two megabytes needs root")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Writes a file until the disk is full."""
    with open(path, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))


@linux_only
async def test_a_full_disk_ends_no_training_and_the_log_says_what_is_missing(small_disk: Path, tmp_path: Path) -> None:
    """Also the pod's end is told, as soon as there is space."""
    go = tmp_path / "go"
    script = f"echo before; while [ ! -e {go} ]; do echo lost; sleep 0.02; done; echo after; exit 7"
    async with PodDirectories(small_disk, lambda _: None) as found:
        machine = Machine(found)
        directory = await machine.start(["sh", "-c", script], policy="Never")
        await machine.says(directory, "before")
        filler = small_disk / "filler"
        fill(filler)
        size = directory.log("c0", 0).stat().st_size
        await until("the log to be full", lambda: directory.log("c0", 0).stat().st_size >= size - size % 4096)
        with pytest.raises(OSError, match="No space left"):
            (directory.path / "more").write_bytes(bytes(8192))
        (directory.path / "more").unlink(missing_ok=True)
        go.touch()
        supervisor = supervisor_pid(directory)
        await until("the command to end", lambda: not processes_marked(directory.uid))
        assert Path(f"/proc/{supervisor}").exists()
        filler.unlink()
        record = await machine.done(directory)
        assert terminated(record)["exitCode"] == 7
        text = (await machine.output(directory)).decode()
    assert text.startswith("before\nlost\n")


def test_a_record_that_cannot_be_written_is_dropped_and_the_next_one_says_so(small_disk: Path) -> None:
    log = LogFile(small_disk / "logs" / "0.log")
    log.append(b"t stdout F one\n")
    filler = small_disk / "filler"
    fill(filler)
    line = b"t stdout F " + b"x" * 5000 + b"\n"
    log.append(line)
    log.append(line * 2)
    filler.unlink()
    log.append(b"t stdout F two\n")
    log.close()
    first, gap, last = (small_disk / "logs" / "0.log").read_bytes().splitlines()
    assert (first, last) == (b"t stdout F one", b"t stdout F two")
    missing = f"[trainwright: 3 lines of output ({3 * len(line)} bytes) could not be written here: No space left"
    assert missing in gap.decode()


@linux_only
async def test_a_supervisor_that_hangs_is_killed_after_the_grace(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "HUNG_SECONDS", 0.5)
    monkeypatch.setattr("trainwright.embedded.node.kubelet.HUNG_SECONDS", 0.5)
    created = await cluster.create(PODS, pod("p", "sh", "-c", "sleep 600 & sleep 600"))
    uid = created["metadata"]["uid"]
    await cluster.until_pod("p", "Running")
    os.kill(supervisor_pid(PodDirectory(cluster.directory / "node" / "pods" / uid)), signal.SIGSTOP)
    await cluster.client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=1))
    await cluster.until_gone(PODS, "p", seconds=10)
    assert processes_marked(uid) == []


@linux_only
async def test_a_supervisor_that_hangs_does_not_keep_the_cluster_from_ending(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "HUNG_SECONDS", 0.5)
    created = await cluster.create(PODS, pod("p", "sleep", "600"))
    uid = created["metadata"]["uid"]
    await cluster.until_pod("p", "Running")
    os.kill(supervisor_pid(PodDirectory(cluster.directory / "node" / "pods" / uid)), signal.SIGSTOP)
    await cluster.stop_node()
    await cluster.node.end_pods(0)
    assert processes_marked(uid) == []
    await cluster.start_node()


async def test_damaged_files_are_their_pods_problem_only(cluster: Cluster) -> None:
    """As a crash of the machine leaves them, full of zeros or cut; and one that is whole and says nothing."""
    names = {"zeros": b"\0" * 512, "cut": b'{"uid": ', "nothing": b"{}", "list": b"[1]"}
    for name in (*names, "whole"):
        await cluster.create(PODS, pod(name, "sleep", "600"))
    pods = {name: await cluster.until_pod(name, "Running") for name in (*names, "whole")}
    await cluster.stop_node()
    for name, damage in names.items():
        directory = PodDirectory(cluster.directory / "node" / "pods" / pods[name]["metadata"]["uid"])
        os.kill(supervisor_pid(directory), signal.SIGKILL)
        (directory.path / "pod.json").write_bytes(damage)
        (directory.path / "record.json").write_bytes(damage)
    await cluster.start_node()
    for name in names:
        failed = await cluster.until_pod(name, "Failed")
        assert failed["status"]["reason"] == "SupervisorLost"
    assert await cluster.until_pod("whole", "Running")


@pytest.mark.skipif(PROBED.name == "T0", reason=PROBED.reason)
async def test_a_pod_sees_nothing_of_the_clusters_own_directory_but_its_own(cluster: Cluster) -> None:
    """Also not what the control plane writes there later."""
    await cluster.stop_node()
    cluster.hides = True
    await cluster.start_node()
    state, go = cluster.directory, cluster.directory.parent / "go"
    script = f"echo mine > kept; while [ ! -e {go} ]; do sleep 0.05; done; find {state} -type f; pwd; hostname"
    security = {"runAsUser": 0, "runAsGroup": 7} if PROBED.maps_users else {}
    created = await cluster.create(PODS, pod("p", "sh", "-c", script, securityContext=security))
    await cluster.until_pod("p", "Running")
    (state / "written-later").write_text("secret")
    go.touch()
    await cluster.until_pod("p", "Succeeded")
    work = PodDirectory(state / "node" / "pods" / created["metadata"]["uid"]).work
    assert (await cluster.log("p")).split() == [str(work / "kept"), str(work), "p"]
    assert (work / "kept").read_text() == "mine\n"
