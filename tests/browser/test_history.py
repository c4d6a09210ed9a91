"""History and comparison while the control plane is down."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from browser.site import Visitor, address_of, key_of
from commandline import COMMAND, CommandLine
from selfcheck.leftovers import Processes

SCRIPT = Path(__file__).with_name("train.py")


def test_runs_are_shown_and_compared_with_no_cluster_up(
    trainwright: CommandLine, visit: Callable[..., Visitor], processes: Processes
) -> None:
    for name, steps in (("first", "20"), ("second", "30")):
        trainwright(
            "run", str(SCRIPT), "--runtime", "plain", "--nodes", "1", "--name", name,
            "--env", f"STEPS={steps}", "--env", "PAUSE=0.1", cwd=SCRIPT.parent, env={"SECRET_OF_MINE": "hush-hush"},
        )  # fmt: skip
    trainwright("down", "--force", code=None)
    page_server = processes.start(
        [*COMMAND, "ui", "--no-open", "--dir", str(trainwright.directory)], stdout=subprocess.PIPE, text=True
    )
    assert page_server.stdout is not None
    assert "The page is at http://127.0.0.1:" in page_server.stdout.readline()
    visitor = visit(address_of(trainwright.directory), key_of(trainwright.directory))
    page = visitor.go("/")
    page.get_by_text("The cluster does not answer").wait_for()
    page.get_by_role("link", name="The history of runs").click()
    page.get_by_role("row", name=re.compile("second-")).locator(".state.complete").wait_for()
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare").click()
    page.get_by_label("Curve of loss").locator("canvas").wait_for()
    page.get_by_role("row", name=re.compile("^step 20 30|^step 30 20")).wait_for()
    page.get_by_role("button", name="what is equal, too").click()
    page.get_by_role("row", name=re.compile("^duration")).wait_for()  # two runs may have taken equally long
    names = page.get_by_role("region", name="Variables (names only)")
    names.get_by_text("SECRET_OF_MINE").wait_for()
    page.get_by_role("region", name="Packages").get_by_text("msgspec").wait_for()
    assert "hush-hush" not in page.content(), "the values of variables are nobody's business"

    page.get_by_role("link", name=re.compile("^second-")).first.click()
    page.get_by_label("Curve of loss").wait_for()
    page.get_by_role("tab", name="Logs").click()
    page.locator(".line", has_text="is done").wait_for()
    page.get_by_role("tab", name="Diff").click()
    page.get_by_text("What changed since first-").wait_for()
    page.get_by_role("tab", name="Timeline").click()
    page.get_by_text("Complete").first.wait_for()
