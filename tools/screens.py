"""Captures the screens of `docs/screens` from a real terminal, 80 and 160 columns wide: `make screens`.

Everything is real: a local cluster in a directory of its own, jobs that train, fail or hang, and the commands on a
pseudo-terminal. Each screen becomes a text file and an SVG picture. Ages, times and ids differ from one capture to the
next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from picture import screen_of, svg_of, text_of
from pseudoterminal import OnTerminal, on_screen
from trainwright.cli import commands

ROOT = Path(__file__).resolve().parents[1]
SCREENS = ROOT / "docs" / "screens"
WIDTHS = (80, 160)
TRAINWRIGHT = Path(sys.executable).parent / "trainwright"

TRAIN = """\
import os, time
from trainwright import progress
rank = int(os.environ.get("JOB_COMPLETION_INDEX", 0))
for step in range(1, 41):
    time.sleep(0.1)
    progress(step, 40, loss=round(2 / step, 3))
    if rank == 0 and step % 10 == 0:
        print(f"step {step}  loss {2 / step:.3f}", flush=True)
"""
BROKEN = """\
import os
if os.environ.get("JOB_COMPLETION_INDEX") == "1":
    open("data/train.csv")
"""


class Studio:
    """A directory with scripts, and a local cluster."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "NO_COLOR")},
            "HOME": str(directory),
            "XDG_STATE_HOME": str(directory / "state"),
            "PATH": f"{TRAINWRIGHT.parent}{os.pathsep}{os.environ['PATH']}",
        }
        (directory / "train.py").write_text(TRAIN)
        (directory / "broken.py").write_text(BROKEN)

    def do(self, line: str, *, code: int = 0) -> None:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code:
            raise SystemExit(f"{line}: exit {done.returncode}\n{done.stdout}{done.stderr}")

    def environment(self) -> dict[str, str]:
        """Variables for a terminal of this studio."""
        own = {key: self._environment[key] for key in ("HOME", "XDG_STATE_HOME", "PATH")}
        return {"KUBECONFIG": "", "NO_COLOR": "", **own}

    def capture(self, name: str, line: str, meanwhile: Callable[[OnTerminal], None] | None = None) -> None:
        """Runs a line at each width and writes what the terminal shows at its end."""
        for columns in WIDTHS:
            words = ["bash", "-c", f"cd {self._directory} && exec {line}"]
            with on_screen(words, columns, self.environment()) as terminal:
                if meanwhile is not None:
                    meanwhile(terminal)
                terminal.wait(120)
                raw = terminal.raw
            self._keep(f"{name}-{columns}", f"$ {line}\r\n{raw}", columns, line)

    def _keep(self, name: str, raw: str, columns: int, title: str) -> None:
        release = os.uname().release
        for real, shown in (
            (str(self._directory), "~"),
            (str(ROOT), "~/trainwright"),
            (release, release.split("-")[0]),
        ):
            raw = raw.replace(real, shown)
        rows = screen_of(raw, columns)
        SCREENS.mkdir(exist_ok=True)
        (SCREENS / f"{name}.txt").write_text(text_of(rows))
        (SCREENS / f"{name}.svg").write_text(svg_of(rows, columns, title))
        print(f"written: docs/screens/{name}.txt and .svg, {len(rows)} rows")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="screens-") as directory:
        studio = Studio(Path(directory))
        studio.do("trainwright up --detach")
        try:
            _capture_all(studio)
        finally:
            studio.do("trainwright down --force")
    return 0


def _capture_all(studio: Studio) -> None:
    example = ROOT / "examples" / "torch-ddp" / "trainjob.yaml"
    studio.do(f"cp {example} trainjob.yaml")
    studio.capture("doctor", "trainwright doctor")
    studio.capture("run", "trainwright run train.py --nodes 2")
    studio.do("trainwright run broken.py --nodes 2 --name broken", code=1)
    if commands.find("why") is not None:
        studio.capture("why", "trainwright why broken")
    studio.capture("explain", "trainwright explain trainjob.yaml spec.replicatedJobs[0].template.spec.parallelism")
    studio.capture("get-w", "trainwright get -w", lambda terminal: _watch(studio, terminal))
    studio.capture("get-runtimes", "trainwright get runtimes")
    studio.capture("runs", "trainwright runs")


def _watch(studio: Studio, terminal: OnTerminal) -> None:
    """A job begins and ends while `get -w` looks on."""
    terminal.wait_for("NAME")
    name = f"watched-{time.monotonic_ns() % 1000}"
    studio.do(f"trainwright run train.py --nodes 2 --name {name} --detach")
    terminal.wait_for(lambda screen: any(name in row and "Complete" in row for row in screen.splitlines()))
    terminal.press_ctrl_c()


if __name__ == "__main__":
    sys.exit(main())
