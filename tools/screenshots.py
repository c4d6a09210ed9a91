"""Take the pictures of `docs/ui`: `make screenshots`.

A local cluster in a directory of its own trains real jobs, and a real Chromium looks at its page: jobs and one job in
both themes and three widths, and a few views more.
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from browser.site import ARGUMENTS, Visitor, address_of, key_of
from commandline import CommandLine, command_line

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "ui"
SCRIPT = ROOT / "tests" / "browser" / "train.py"
WIDTHS = {"phone": (390, 844), "desk": (1280, 800), "wide": (3840, 1950)}
JOBS: dict[str, tuple[str, ...]] = {
    "mnist": ("--nodes", "1", "--env", "STEPS=60", "--env", "PAUSE=0.02"),
    "bert-sweep-7": ("--nodes", "2", "--env", "STEPS=120", "--env", "FAIL_AT=70", "--env", "PAUSE=0.1"),
    "gpt2-pretrain": ("--nodes", "2", "--env", "STEPS=4000"),
    "vit-b16": ("--nodes", "1", "--cpus", "64"),
    "resnet50-ddp": ("--nodes", "2", "--env", "STEPS=900", "--env", "PAUSE=0.15"),
    "llama3-lora": ("--nodes", "2", "--env", "STEPS=300", "--env", "PAUSE=0.15"),
}
SECONDS = 35.0
"""How long they train before the pictures are taken."""


def main() -> None:
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="trainwright-") as scratch,
        command_line(Path(scratch) / "trainwright") as line,
    ):
        os.environ["XDG_STATE_HOME"] = scratch  # the default directory needs no --dir in the commands that are shown
        _train(line, Path(scratch))
        with sync_playwright() as playwright:
            program = shutil.which("chromium")
            chromium = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
            for theme in ("light", "dark"):
                _look(chromium, line, theme)
            chromium.close()
    total = sum(picture.stat().st_size for picture in PICTURES.glob("*.webp"))
    print(f"{len(list(PICTURES.glob('*.webp')))} pictures in {PICTURES.relative_to(ROOT)}, {total // 1024} KB")


def _train(line: CommandLine, scratch: Path) -> None:
    line("up", "--detach", "--ui")
    home = scratch / "work"
    home.mkdir()
    shutil.copy(SCRIPT, home)
    for name, words in JOBS.items():
        command = ["--", "python", "train.py"]  # and no path of this machine
        line("run", "--runtime", "plain", "--name", name, "--detach", *words, *command, cwd=home)
        if name == "gpt2-pretrain":
            time.sleep(4)
            line("suspend", name)
    time.sleep(SECONDS)


def _look(chromium: Any, line: CommandLine, theme: str) -> None:
    for width, (across, down) in WIDTHS.items():
        visitor = Visitor(
            chromium, address_of(line.directory), color_scheme=theme, viewport={"width": across, "height": down}
        )
        visitor.sign_in(key_of(line.directory))
        visitor.go("/").locator(".c-progress .progress").first.wait_for()
        _take(visitor, f"jobs-{width}-{theme}")
        visitor.go("/jobs/default/bert-sweep-7" if width != "wide" else "/jobs/default/resnet50-ddp")
        visitor.page.locator(".chart canvas").first.wait_for()
        _take(visitor, f"job-{width}-{theme}")
        if width == "desk":
            for name, path, seen in (
                ("running", "/jobs/default/resnet50-ddp", ".chart canvas"),
                ("logs", "/jobs/default/resnet50-ddp/logs", ".line"),
            ):
                visitor.go(path).locator(seen).first.wait_for()
                _take(visitor, f"{name}-{theme}")
            if theme == "light":
                _compare(visitor)
        visitor.close()


def _compare(visitor: Visitor) -> None:
    page = visitor.go("/history")
    page.get_by_role("checkbox").first.wait_for()
    for box in page.get_by_role("checkbox").all()[:3]:
        box.check()
    _take(visitor, "history-light")
    page.get_by_role("button", name="Compare").click()
    page.locator(".chart canvas").first.wait_for()
    _take(visitor, "compare-light")


def _take(visitor: Visitor, name: str) -> None:
    visitor.page.wait_for_timeout(1200)
    session = visitor.page.context.new_cdp_session(visitor.page)  # for WebP: a third of a PNG
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": 82})
    (PICTURES / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
