"""What processes use is summed up for their container; the rest of the machine is not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trainwright.embedded.node.resources import usage
from trainwright.embedded.node.resources.usage import Keeper, Meter, by_owner

TICKS = os.sysconf("SC_CLK_TCK")
ONE, OTHER = ("uid-1", "main"), ("uid-2", "main")


class Machine:
    """A /proc that a test writes."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.machine(busy=0, free_kib=600)

    def machine(self, *, busy: float, free_kib: int) -> None:
        (self.proc / "stat").write_text(f"cpu  {int(busy * TICKS)} 0 0 777 888 0 0 0 0 0\ncpu0 1 2\n")
        (self.proc / "meminfo").write_text(f"MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: {free_kib} kB\n")

    def process(self, pid: int, parent: int, *, cpu: float = 0, waited: float = 0, kib: int = 0) -> None:
        directory = self.proc / str(pid)
        directory.mkdir(exist_ok=True)
        times = f"{int(cpu * TICKS)} 0 {int(waited * TICKS)} 0"
        (directory / "stat").write_text(f"{pid} (a ) name) S {parent} {' 0' * 9} {times} 20 0")
        (directory / "status").write_text(f"Name:\tx\nRssAnon:\t{kib} kB\nRssFile:\t99999 kB\nRssShmem:\t1 kB\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(usage, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(usage, "FRESH_SECONDS", 0.0)
    monkeypatch.setenv("PATH", str(tmp_path))
    return Machine(tmp_path)


async def test_cpu_and_memory_of_all_descendants_without_the_keepers(machine: Machine) -> None:
    machine.process(1, 0, cpu=1000, kib=1000)
    machine.process(10, 1, cpu=500, kib=500)  # keeper outside
    machine.process(11, 10, cpu=500, kib=500)  # and inside the namespace
    machine.process(12, 11, cpu=1, kib=100)
    machine.process(13, 12, cpu=2, waited=3, kib=200)
    machine.process(20, 1, cpu=500, kib=500)  # a keeper without a namespace
    machine.process(21, 20, kib=7)
    meter = Meter(lambda: {ONE: Keeper(10, 2), OTHER: Keeper(20, 1)}, machine.proc)
    began = time.monotonic()
    await meter.report()
    machine.process(13, 12, cpu=4, waited=5, kib=300)
    machine.machine(busy=8, free_kib=400)
    report = await meter.report()
    took = time.monotonic() - began
    assert 4 / took * 1e9 <= report.containers[ONE].cpu  # four seconds in less than it took
    assert (report.containers[ONE].memory, report.containers[OTHER].memory) == (402 * 1024, 8 * 1024)
    assert report.containers[OTHER].cpu == 0
    assert report.machine.cpu == pytest.approx(2 * report.containers[ONE].cpu, rel=0.001)
    assert report.machine.memory == 600 * 1024
    assert report.containers[ONE].gpu_memory is None


async def test_what_has_ended_since_uses_nothing_and_never_less(machine: Machine) -> None:
    machine.process(10, 1)
    machine.process(11, 10, cpu=100, kib=100)
    meter = Meter(lambda: {ONE: Keeper(10, 1)}, machine.proc)
    await meter.report()
    machine.process(11, 10, cpu=1, kib=1)
    assert (await meter.report()).containers[ONE].cpu == 0


async def test_whoever_asks_again_at_once_gets_the_same_answer(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "FRESH_SECONDS", 60.0)
    meter = Meter(dict, machine.proc)
    first = await meter.report()
    assert await meter.report() is first


async def test_gpu_memory_is_what_nvidias_program_says(machine: Machine) -> None:
    program = machine.proc / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '11, 100'\necho '12, 50'\necho '99, 7'\necho '11, [N/A]'\n")
    program.chmod(0o755)
    machine.process(10, 1)
    machine.process(11, 10)
    machine.process(12, 11)
    report = await Meter(lambda: {ONE: Keeper(10, 1)}, machine.proc).report()
    assert report.containers[ONE].gpu_memory == report.machine.gpu_memory == 150 * 2**20


def test_lines_that_are_no_processes_count_nothing() -> None:
    assert by_owner(["", "no GPUs", "5, x", "7, 1"], {5: ONE, 7: OTHER}) == {OTHER: 2**20}
