"""What containers and the machine use of CPU, memory and GPUs: read from /proc when somebody asks.

In: the keepers of the running containers. Out: `Usage` for each, over the time since the last look; the first look
takes a second. A container's processes are its keeper's descendants, without the keepers. CPU is theirs and that of
the children they have waited for. Memory is what they have for themselves and what they share through shared memory;
the pages of files are not counted, since the kernel can take them back.

One look reads every process's `stat` once, and `status` of those in pods: 10 ms of CPU with 180 of them. Whoever asks
again within five seconds gets the last answer, so that asking all the time takes less than 1 % of a core.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
FRESH_SECONDS = 5.0
"""An answer that is younger is given again."""
OLD_SECONDS = 60.0
"""A look that is older says nothing about now."""
FIRST_SECONDS = 1.0
GPU_SECONDS = 5.0
GPU_QUERY = ["--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits"]

Owner = tuple[str, str]
"""A pod's UID and a container's name."""


class Keeper(NamedTuple):
    """A container's keeper, and how many keepers stand above its command: two where there is a PID namespace."""

    pid: int
    levels: int


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU in nanoseconds a second, memory in bytes; of GPUs, bytes of their memory, or None where there are none."""

    cpu: int
    memory: int
    gpu_memory: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Everything at one moment: CPU in seconds since the start, memory in bytes."""

    at: float
    cpu: Mapping[Owner, float]
    memory: Mapping[Owner, int]
    gpu_memory: Mapping[Owner, int] | None
    machine_cpu: float
    machine_memory: int


@dataclass(frozen=True, slots=True)
class Report:
    """`at` is a time of day; `window` the seconds that CPU is averaged over."""

    at: float
    window: float
    machine: Usage
    containers: Mapping[Owner, Usage]


class Meter:
    """`keepers` finds the keeper of each running container."""

    def __init__(self, keepers: Callable[[], Mapping[Owner, Keeper]], proc: Path = PROC) -> None:
        self._keepers = keepers
        self._proc = proc
        self._last: Look | None = None
        self._report: tuple[float, Report] | None = None
        self._asking = asyncio.Lock()

    async def report(self) -> Report:
        """What is used now. Raises `OSError` where there is no /proc."""
        async with self._asking:
            present = time.monotonic()
            if self._report is not None and present - self._report[0] < FRESH_SECONDS:
                return self._report[1]
            before = self._last
            if before is None or present - before.at > OLD_SECONDS:
                before = await asyncio.to_thread(self._look)
                await asyncio.sleep(FIRST_SECONDS)
            self._last = now = await asyncio.to_thread(self._look)
            self._report = (now.at, _report(before, now))
            return self._report[1]

    def _look(self) -> Look:
        keepers = self._keepers()
        processes = _processes(self._proc)
        owners = _owners(keepers, processes)
        cpu = dict.fromkeys(keepers, 0.0)
        memory = dict.fromkeys(keepers, 0)
        for pid, owner in owners.items():
            cpu[owner] += processes[pid].cpu
            memory[owner] += _memory(self._proc / str(pid) / "status")
        machine_cpu, machine_memory = _machine(self._proc)
        return Look(time.monotonic(), cpu, memory, _gpu_memory(owners), machine_cpu, machine_memory)


def _report(before: Look, now: Look) -> Report:
    window = max(now.at - before.at, 0.001)

    def rate(later: float, earlier: float) -> int:
        return max(0, int((later - earlier) / window * 1e9))

    containers = {
        owner: Usage(
            rate(cpu, before.cpu.get(owner, 0.0)),
            now.memory[owner],
            None if now.gpu_memory is None else now.gpu_memory.get(owner, 0),
        )
        for owner, cpu in now.cpu.items()
    }
    gpus = None if now.gpu_memory is None else sum(now.gpu_memory.values())
    machine = Usage(rate(now.machine_cpu, before.machine_cpu), now.machine_memory, gpus)
    return Report(time.time(), window, machine, containers)


@dataclass(frozen=True, slots=True)
class Process:
    parent: int
    cpu: float


def _processes(proc: Path) -> dict[int, Process]:
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                with open(proc / name / "stat", "rb") as file:
                    stat = file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = stat[stat.rindex(b")") + 2 :].split()
            # user and system time, and those of children that have been waited for
            found[int(name)] = Process(int(fields[1]), sum(int(time) for time in fields[11:15]) / ticks)
    return found


def _owners(keepers: Mapping[Owner, Keeper], processes: Mapping[int, Process]) -> dict[int, Owner]:
    """Whose each process is: that of its nearest ancestor that is a keeper. Keepers themselves are ours."""
    roots = {keeper.pid: owner for owner, keeper in keepers.items()}
    found: dict[int, Owner] = {}
    for pid in processes:
        path, at = [], pid
        while at in processes and at not in roots and at not in found:
            path.append(at)
            at = processes[at].parent
        owner = roots.get(at) or found.get(at)
        if owner is not None:
            found |= dict.fromkeys(path, owner)
    inner = {keeper.pid for keeper in keepers.values() if keeper.levels == 2}
    return {pid: owner for pid, owner in found.items() if processes[pid].parent not in inner}


def _memory(status: Path) -> int:
    try:
        text = status.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(("RssAnon:", "RssShmem:")))


def _machine(proc: Path) -> tuple[float, int]:
    """Seconds of CPU since the start, and bytes of memory in use."""
    times = [int(word) for word in (proc / "stat").read_text().splitlines()[0].split()[1:9]]
    busy = sum(times) - times[3] - times[4]  # without idle and waiting for disks
    known = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines() if ":" in line)
    total, available = (int(known[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return busy / os.sysconf("SC_CLK_TCK"), total - available


def _gpu_memory(owners: Mapping[int, Owner]) -> dict[Owner, int] | None:
    """Bytes of GPU memory, by what NVIDIA's own program says; None without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, *GPU_QUERY], capture_output=True, text=True, timeout=GPU_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return by_owner(done.stdout.splitlines(), owners)


def by_owner(lines: Iterable[str], owners: Mapping[int, Owner]) -> dict[Owner, int]:
    """The sums of lines `pid, MiB` for each container. What the driver cannot say (`[N/A]`) counts nothing."""
    found: dict[Owner, int] = {}
    for line in lines:
        pid, _, mebibytes = (part.strip() for part in line.partition(","))
        owner = owners.get(int(pid)) if pid.isdecimal() else None
        if owner is not None and mebibytes.isdecimal():
            found[owner] = found.get(owner, 0) + int(mebibytes) * 2**20
    return found
