"""How much longer one waits for the first line of a script than with bare torchrun.

    python bench/script.py [--runs 5]        needs PyTorch (make setup-torch)

Each run starts the same script by `torchrun`, by `trainwright run` with nothing running before, and by `trainwright
run` with a cluster up, in turn, so that a busy machine is busy for all three.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

BIN = Path(sys.executable).parent
LINE = "first line"
SCRIPT = f"print({LINE!r}, flush=True)\nif __name__ != '__main__':\n    import torch\n"
TORCHRUN, NOTHING_RUNS, CLUSTER_IS_UP = "torchrun", "run, nothing running before", "run, cluster up"
GOALS = {NOTHING_RUNS: 1.0, CLUSTER_IS_UP: 0.3}  # in seconds over torchrun


def first_line(command: Sequence[str | Path], folder: Path) -> float:
    """Seconds from the start of a command until the script's line is on its standard output."""
    began = time.monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        seen, lines = 0.0, []
        for line in running.stdout:
            lines.append(line)
            if not seen and LINE in line:
                seen = time.monotonic() - began
    if running.returncode != 0 or not seen:
        raise RuntimeError(f"{command} ended with {running.returncode}:\n{''.join(lines)}")
    return seen


def measure(folder: Path) -> dict[str, float]:
    (folder / "train.py").write_text(SCRIPT)
    state = folder / "state"
    run: list[str | Path] = [BIN / "trainwright", "run", "--dir", state, "train.py"]
    figures = {}
    subprocess.run([BIN / "trainwright", "up", "--detach", "--dir", state], check=True, capture_output=True)
    try:
        figures[CLUSTER_IS_UP] = first_line(run, folder)
    finally:
        subprocess.run([BIN / "trainwright", "down", "--force", "--dir", state], check=True, capture_output=True)
    figures[TORCHRUN] = first_line([BIN / "torchrun", "train.py"], folder)
    figures[NOTHING_RUNS] = first_line(run, folder)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="how often everything is measured (default: 5)")
    runs: list[dict[str, float]] = []
    for _ in range(parser.parse_args().runs + 1):
        with tempfile.TemporaryDirectory(prefix="script-") as folder:
            runs.append(measure(Path(folder)))
    del runs[0]  # it warms the machine's file cache
    print(f"load {os.getloadavg()[0]:.1f}{'s, median':>32}{'over torchrun':>16}{'at most':>10}")
    for name in (TORCHRUN, NOTHING_RUNS, CLUSTER_IS_UP):
        over = median(run[name] - run[TORCHRUN] for run in runs)
        goal = (
            f"{over:>16.3f}{GOALS[name]:>10.1f} {'met' if over <= GOALS[name] else 'MISSED'}" if name in GOALS else ""
        )
        every = ", ".join(f"{run[name]:.2f}" for run in runs)
        print(f"{name:<30}{median(run[name] for run in runs):>10.3f}{goal}   ({every})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
