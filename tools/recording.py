"""Records `trainwright run` on a real terminal as an animated SVG, `docs/recording.svg`: `make recording`.

Everything is real, as in `screens.py`: a local cluster, a script that trains on two nodes. The picture shows the screen
as it was at each moment, with the pauses it had, and begins anew at its end. Where animations are unwanted
(`prefers-reduced-motion`), it shows the end.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from picture import Cell, screen_of, svg_of
from pseudoterminal import on_screen
from screens import ROOT, Studio

COLUMNS = 80
LINE = "trainwright run train.py --nodes 2"
PAUSE = 0.25
"""Seconds between two looks at the screen."""
REST = 4.0
"""Seconds that the end stays."""


class Frame(NamedTuple):
    at: float
    rows: list[list[Cell]]


def record(studio: Studio, directory: Path) -> list[Frame]:
    words = ["bash", "-c", f"cd {directory} && exec {LINE}"]
    frames = [Frame(0.0, screen_of(f"$ {LINE}", COLUMNS))]
    began = time.monotonic()
    with on_screen(words, COLUMNS, studio.environment()) as terminal:
        is_over = False
        while not is_over:
            is_over = terminal.process.poll() is not None
            if is_over:
                terminal.wait(10)
            raw = f"$ {LINE}\r\n{terminal.raw}".replace(str(directory), "~").replace(str(ROOT), "~/trainwright")
            rows = screen_of(raw, COLUMNS)
            if rows != frames[-1].rows:
                frames.append(Frame(time.monotonic() - began, rows))
            time.sleep(PAUSE)
    return frames


def animated(frames: Sequence[Frame], title: str) -> str:
    """One picture of the size of the largest screen; every frame is a group that is visible in its time."""
    total = frames[-1].at + REST
    tallest = max((frame.rows for frame in frames), key=len)
    head, _, _ = svg_of(tallest, COLUMNS, title).partition("<g ")
    groups, rules = [], []
    for number, frame in enumerate(frames):
        begin, end = (
            frame.at / total * 100,
            (frames[number + 1].at if number + 1 < len(frames) else total) / total * 100,
        )
        body = svg_of(frame.rows, COLUMNS, title).partition("<g ")[2].rpartition("</g>")[0]
        groups.append(f'<g id="f{number}" class="f" {body}</g>')
        shown = f"{begin:.2f}%,{end - 0.01:.2f}% {{opacity: 1}}"
        before = f"0%,{begin - 0.01:.2f}% {{opacity: 0}} " if begin > 0 else ""
        after = f" {end:.2f}%,100% {{opacity: 0}}" if end < 100 else ""
        rules.append(f"@keyframes k{number} {{{before}{shown}{after}}}")
        rules.append(f"#f{number} {{animation: k{number} {total:.2f}s step-end infinite}}")
    last = len(frames) - 1
    still = f"@media (prefers-reduced-motion: reduce) {{.f {{animation: none !important}} #f{last} {{opacity: 1}}}}"
    style = "\n".join([".f {opacity: 0}", *rules, still])
    return "\n".join([f"{head}<style>", style, "</style>", *groups, "</svg>"]) + "\n"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="recording-") as directory:
        studio = Studio(Path(directory))
        studio.do("trainwright up --detach")
        try:
            frames = record(studio, Path(directory))
        finally:
            studio.do("trainwright down --force")
    (ROOT / "docs" / "recording.svg").write_text(animated(frames, LINE))
    print(f"written: docs/recording.svg, {len(frames)} frames, {frames[-1].at:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
