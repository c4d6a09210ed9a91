"""CPU time of one rendered TrainJob, and how it grows with the number of nodes.

    python bench/render.py [--seconds 2] [--command]

Renders the recorded two-node torch case: decode the TrainJob as it comes off the wire, build the plan, encode its
objects. Then 2, 1,000 and 10,000 nodes with torch, whose output does not grow, and with MPI, whose
hostfile does. `--command` measures a whole `trainwright render` from start to exit as well. Exit code 1 when a limit
is missed; the limits are `LIMITS`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import yaml

from trainwright.api.runtime import TrainingRuntime
from trainwright.api.trainjob import TrainJob
from trainwright.cli.console.output import to_yaml
from trainwright.cli.files.offline import Offline
from trainwright.pipeline import MaskedKeys, Observed, build
from trainwright.pipeline.framework import Framework
from trainwright.plugins import load

LIMITS = {"torch, 2 nodes": 1.0, "torch, 10000 nodes / 2 nodes": 1.5, "whole command": 350.0}
"""Milliseconds of CPU, and for the ratio how often the CPU of two nodes."""

CASES = Path(__file__).parent.parent / "tests" / "conformance" / "cases"
TORCH = CASES / "torch-example01-multinode" / "input.yaml"
MPI = CASES / "mpi-deepspeed-4nodes-gpu" / "input.yaml"


class Case:
    """One TrainJob with its runtime, as the operator holds them."""

    def __init__(self, file: Path, nodes: int) -> None:
        offline = Offline.of([str(file)])
        (document,) = offline.train_jobs
        value = offline.answer_train_job(document).value
        value["spec"]["trainer"]["numNodes"] = nodes
        value["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
        self.body = msgspec.json.encode(value)
        runtime = offline.find_runtime(msgspec.json.decode(self.body, type=TrainJob).spec.runtime_ref, "default")  # type: ignore[union-attr]
        assert runtime is not None
        self.runtime = msgspec.convert(offline.answer_runtime(runtime).value, TrainingRuntime)
        self.framework: Framework = load(discovered={})
        self.decoder = msgspec.json.Decoder(TrainJob)
        self.encoder = msgspec.json.Encoder()

    def render(self) -> bytes:
        job = self.decoder.decode(self.body)
        plan = build(job, self.runtime, Observed(), self.framework, MaskedKeys())
        return b"".join(self.encoder.encode(intention.object) for intention in plan.objects)

    def to_yaml(self) -> str:
        job = self.decoder.decode(self.body)
        plan = build(job, self.runtime, Observed(), self.framework, MaskedKeys())
        return to_yaml([intention.object for intention in plan.objects])


def milliseconds(work: Any, seconds: float) -> float:
    """CPU of one call: the best of several rounds, since noise only ever adds."""
    work()
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        start, count = time.process_time(), 0
        while time.process_time() - start < 0.05:
            work()
            count += 1
        best = min(best, (time.process_time() - start) / count * 1000)
    return best


def whole_command() -> float:
    """CPU of `trainwright render`, user and system, from start to exit; the best of five."""
    best = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "trainwright.cli.main", "render", "-f", str(TORCH)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, used * 1000)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each measurement lasts (default: 2)")
    parser.add_argument("--command", action="store_true", help="measure the whole command as well")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    arguments = parser.parse_args()
    results: dict[str, float] = {}
    for name, file in (("torch", TORCH), ("mpi", MPI)):
        for nodes in (2, 1000, 10000):
            results[f"{name}, {nodes} nodes"] = milliseconds(Case(file, nodes).render, arguments.seconds)
    results["torch, 10000 nodes / 2 nodes"] = results["torch, 10000 nodes"] / results["torch, 2 nodes"]
    results["torch, 2 nodes, as YAML text"] = milliseconds(Case(TORCH, 2).to_yaml, arguments.seconds)
    if arguments.command:
        results["whole command"] = whole_command()
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        for name, value in results.items():
            unit = "times" if "/" in name else "ms CPU"
            limit = f"   (limit {LIMITS[name]:g})" if name in LIMITS else ""
            print(f"{name:<32} {value:8.3f} {unit}{limit}")
    return 1 if any(results.get(name, 0) > limit for name, limit in LIMITS.items()) else 0


if __name__ == "__main__":
    assert yaml.__with_libyaml__, "PyYAML without libyaml would measure something else"
    sys.exit(main())
