"""How fast the local cluster starts pods, and what it costs while nothing happens.

    python bench/local.py [--jobs 20] [--pods 200] [--idle 20]

Starts a cluster of its own in a directory of its own, and ends it. Prints: seconds from the creation of a TrainJob to
its process (p50, p99); seconds until all pods of `sleep` run; the control plane's share of a core and its memory, while
nothing happens. Goals: 0.15 and 0.5 s; 10 s for 200 pods; 1 % and 120 MB. On a machine with neighbours only its CPU
figures mean something.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trainwright.api.resources import PODS, TRAIN_JOBS
from trainwright.client import Client, DeleteOptions, kubeconfig

COMMAND = Path(sys.executable).parent / "trainwright"
PATIENCE_SECONDS = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--idle", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trainwright-bench-") as scratch:
        directory = Path(scratch) / "state"
        subprocess.run([COMMAND, "up", "--detach", "--dir", directory], check=True, capture_output=True)
        try:
            asyncio.run(measure(directory, Path(scratch), options))
        finally:
            subprocess.run([COMMAND, "down", "--force", "--dir", directory], check=True, capture_output=True)


async def measure(directory: Path, scratch: Path, options: argparse.Namespace) -> None:
    control_plane = process_of(directory)
    async with Client.to(kubeconfig.load(directory / "kubeconfig")) as client:
        times = sorted([await start_of_job(client, scratch, f"job-{number}") for number in range(options.jobs)])
        p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
        print(
            f"TrainJob created to process started: p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms ({len(times)} jobs)"
        )
        before, begun = cpu_seconds(control_plane), time.monotonic()
        await start_pods(client, options.pods)
        took, cpu = time.monotonic() - begun, cpu_seconds(control_plane) - before
        print(f"{options.pods} pods of sleep run after {took:.1f} s ({cpu:.1f} s of the control plane's CPU)")
        await end_pods(client)
    await asyncio.sleep(5)
    before, begun = cpu_seconds(control_plane), time.monotonic()
    await asyncio.sleep(options.idle)
    share = (cpu_seconds(control_plane) - before) / (time.monotonic() - begun)
    print(f"idle: {share:.2%} of a core, {memory(control_plane):.0f} MB")


async def start_of_job(client: Client, scratch: Path, name: str) -> float:
    """Seconds from before the request to the command's own first moment."""
    stamp = scratch / name
    command = ["sh", "-c", f"date +%s.%N > {stamp}.new; mv {stamp}.new {stamp}"]
    spec = {"runtimeRef": {"name": "plain"}, "trainer": {"numNodes": 1, "command": command}}
    body = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}
    created = time.time()
    await client.create(TRAIN_JOBS, body, "default")
    await until(stamp.exists)
    await client.delete(TRAIN_JOBS, name, "default")
    return float(stamp.read_text()) - created


async def start_pods(client: Client, count: int) -> None:
    container = {"name": "c", "image": "none", "command": ["sleep", "600"]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}

    async def create(number: int) -> None:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"sleep-{number}"}, "spec": spec}
        await client.create(PODS, body, "default")

    await asyncio.gather(*(create(number) for number in range(count)))

    async def all_run() -> bool:
        found = (await client.list(PODS, "default")).items or []
        return len([pod for pod in found if (pod.get("status") or {}).get("phase") == "Running"]) >= count

    await until(all_run)


async def end_pods(client: Client) -> None:
    for pod in (await client.list(PODS, "default")).items or []:
        await client.delete(PODS, pod["metadata"]["name"], "default", DeleteOptions(grace_period_seconds=0))

    async def none_is_left() -> bool:
        return not (await client.list(PODS, "default")).items

    await until(none_is_left)


async def until(question: Any) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = question()
        if await answer if asyncio.iscoroutine(answer) else answer:
            return
        if time.monotonic() > end:
            sys.exit(f"not within {PATIENCE_SECONDS:.0f} s: {getattr(question, '__name__', question)}")
        await asyncio.sleep(0.05)


def process_of(directory: Path) -> int:
    """The control plane of this directory."""
    for name in os.listdir("/proc"):
        try:
            words = Path("/proc", name, "cmdline").read_bytes().split(b"\0") if name.isdigit() else []
        except OSError:
            continue
        if b"trainwright.cli.machine.controlplane" in words and os.fsencode(directory) in words:
            return int(name)
    sys.exit(f"no control plane of {directory} runs")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Megabytes of resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
