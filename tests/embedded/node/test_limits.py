"""Limits, users and GPUs of pods, with real processes; and what asks for more than the machine has."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.node.cluster import Cluster, conditions, job_set, pod, running_cluster
from embedded.node.machine import PROBED, Machine, isolations, terminated
from trainwright.api.resources import JOB_SETS, PODS
from trainwright.embedded.node.pods.record import CgroupsToUse, Isolation
from trainwright.embedded.node.resources.devices import NVIDIA, Device

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
GPUS = {NVIDIA: (Device(0, "GPU-a"), Device(1, "GPU-b"))}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path / "state", devices=GPUS) as running:
        yield running


@linux_only
@pytest.mark.parametrize("isolation", isolations())
async def test_a_container_above_its_memory_limit_is_killed_with_the_figures(
    machine: Machine, isolation: Isolation
) -> None:
    """The memory is a child's, and shared pages count once: the parent forks one that would double it."""
    eat = "import os, time; data = bytearray(60 << 20); os.fork(); time.sleep(1.5); more = bytearray(120 << 20)"
    command = ["sh", "-c", f"{sys.executable} -S -c '{eat}; time.sleep(600)'; true"]
    directory = await machine.start(command, isolation=isolation, extra={"c0": {"memoryLimit": 150 << 20}})
    record = await machine.done(directory)
    ended = terminated(record)
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert "more than its limit of 150Mi" in ended["message"]
    assert int(ended["message"].split("used ")[1].split("Mi")[0]) > 150


@linux_only
async def test_a_pod_runs_on_the_cpus_it_was_given(cluster: Cluster) -> None:
    limits = {"resources": {"limits": {"cpu": "1"}}}
    body = pod("p", sys.executable, "-S", "-c", "import os; print(len(os.sched_getaffinity(0)))", container=limits)
    await cluster.create(PODS, body)
    await cluster.until_pod("p", "Succeeded")
    assert await cluster.log("p") == "1\n"


@pytest.mark.skipif(not PROBED.maps_users, reason="no user namespaces here")
async def test_a_pod_is_the_user_it_asks_to_be_and_its_files_are_the_callers(cluster: Cluster, tmp_path: Path) -> None:
    asked = {"runAsUser": 4242, "runAsGroup": 4343}
    script = f"id -u; id -g; touch {tmp_path}/mine; stat -c %u {tmp_path}/mine; grep CapEff /proc/self/status"
    await cluster.create(PODS, pod("p", "sh", "-c", script, securityContext=asked))
    await cluster.until_pod("p", "Succeeded")
    assert (await cluster.log("p")).split() == ["4242", "4343", "4242", "CapEff:", "0000000000000000"]
    assert (tmp_path / "mine").stat().st_uid == os.geteuid()
    root = {"runAsUser": 0, "runAsGroup": 1}
    await cluster.create(PODS, pod("root", "sh", "-c", "id -u; grep CapEff /proc/self/status", securityContext=root))
    await cluster.until_pod("root", "Succeeded")
    assert (await cluster.log("root")).split() == ["0", "CapEff:", "0000000000000000"]


async def test_gpus_are_allotted_by_device_and_freed_when_the_pod_ends(cluster: Cluster, tmp_path: Path) -> None:
    gpu = {"resources": {"limits": {NVIDIA: "1"}}}
    wait = f"echo gpu $CUDA_VISIBLE_DEVICES; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name, "sh", "-c", wait, container=gpu))
        await cluster.until_pod(name, "Running")
    await cluster.stop_node()
    await cluster.start_node()
    await cluster.create(PODS, pod("c", "sh", "-c", "echo gpu $CUDA_VISIBLE_DEVICES", container=gpu))
    await cluster.create(PODS, pod("none", "sh", "-c", 'echo "gpu ($CUDA_VISIBLE_DEVICES)"'))
    await cluster.until_pod("none", "Succeeded")
    waiting = await cluster.get(PODS, "c") or {}
    assert conditions(waiting["status"])["PodScheduled"] == ("False", "Unschedulable"), "they are in use: it may wait"
    (tmp_path / "go").touch()
    await cluster.until_pod("c", "Succeeded")
    assert {await cluster.log("a"), await cluster.log("b")} == {"gpu 0\n", "gpu 1\n"}
    assert await cluster.log("c") in ("gpu 0\n", "gpu 1\n")
    assert await cluster.log("none") == "gpu ()\n"


async def test_what_asks_for_more_than_the_machine_has_fails_at_once_and_says_what_there_is(cluster: Cluster) -> None:
    asked = {"resources": {"limits": {NVIDIA: "3"}}}
    body = job_set("j", "true", failurePolicy={"maxRestarts": 3})
    body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0] |= asked
    body["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 6
    await cluster.create(JOB_SETS, body)
    status = await cluster.until_job_set_ends("j", seconds=10)
    assert conditions(status) == {"Failed": ("True", "PodRefused")}
    (failed,) = [c for c in status["conditions"] if c["type"] == "Failed"]
    assert "enough resource: nvidia.com/gpu, requested: 3, capacity: 2. This machine has" in failed["message"]
    assert "2 nvidia.com/gpu" in failed["message"]
    first = (await cluster.pods_of("j"))[0]
    assert (first["status"]["phase"], first["status"]["reason"]) == ("Failed", "OutOfnvidia.com/gpu")


async def test_a_pod_that_is_not_supported_fails_its_job_set_at_once_with_the_reason(cluster: Cluster) -> None:
    body = job_set("j", "true", failurePolicy={"maxRestarts": 3})
    container = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    container["livenessProbe"] = {"grpc": {"port": 1}}
    await cluster.create(JOB_SETS, body)
    status = await cluster.until_job_set_ends("j", seconds=10)
    (failed,) = [c for c in status["conditions"] if c["type"] == "Failed"]
    assert "livenessProbe.grpc is not supported by the local node yet" in failed["message"]


@linux_only
@pytest.mark.parametrize("isolation", isolations())
async def test_what_the_kernel_kills_for_its_memory_is_reported_with_the_figures(
    machine: Machine, isolation: Isolation, tmp_path: Path
) -> None:
    """A tree of files stands in for a delegated cgroup: nobody but the kernel then ends a container for its memory."""
    use: CgroupsToUse = {"directory": str(tmp_path), "controllers": ["memory", "cpu"]}
    events, peak = '"$1"/trainwright-*-c0-0/memory.events', '"$1"/trainwright-*-c0-0/memory.peak'
    eat = f"{sys.executable} -S -c 'import time; data = bytearray(60 << 20); time.sleep(2.5)'"
    said = f'for f in {events}; do echo "oom_kill 1" > "$f"; done; for f in {peak}; do echo 41943040 > "$f"; done'
    made = 'for d in "$1"/trainwright-*; do touch "$d/memory.events" "$d/memory.peak"; done'
    command = ["sh", "-c", f"{eat} && {made} && {said} && kill -9 $$", "sh", str(tmp_path)]
    limits = {"c0": {"memoryLimit": 40 << 20, "milliCpuLimit": 500}}
    directory = await machine.start(command, isolation=isolation, extra=limits, cgroups=use)
    ended = terminated(await machine.done(directory))
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert ended["message"] == "was killed by the kernel at its memory limit of 40Mi (it used 40Mi)"
    [cgroup] = tmp_path.glob("trainwright-*")
    assert cgroup.name == f"trainwright-{directory.uid}-c0-0"
    assert (cgroup / "memory.max").read_text() == str(40 << 20)
    assert (cgroup / "cpu.max").read_text() == "50000 100000"
    assert (cgroup / "cgroup.procs").read_text() == "0", "the keeper has moved itself"
