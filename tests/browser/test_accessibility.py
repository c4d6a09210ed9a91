"""axe-core finds nothing serious on any view, in both themes; the page can be used from the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from browser.site import Visitor, address_of, key_of
from commandline import CommandLine

SCRIPT = Path(__file__).with_name("train.py")


def _axe() -> str:
    import axe_core_python

    return next(Path(axe_core_python.__file__).parent.rglob("axe.min.js")).read_text()


@pytest.fixture(scope="module")
def job(cluster: CommandLine) -> str:
    cluster(
        "run", str(SCRIPT), "--runtime", "plain", "--nodes", "2", "--name", "looked-at", "--detach",
        "--env", "FAIL_AT=30", "--env", "PAUSE=0.05", cwd=SCRIPT.parent,
    )  # fmt: skip
    return "/jobs/default/looked-at"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(cluster: CommandLine, job: str, visit: Callable[..., Visitor], scheme: str) -> None:
    visitor = visit(address_of(cluster.directory), key_of(cluster.directory), color_scheme=scheme)
    page = visitor.go("/")
    page.get_by_role("link", name="looked-at").wait_for()
    page.evaluate(_axe())
    found = []
    for path in ("/", job, f"{job}/logs", f"{job}/objects", f"{job}/timeline", "/history", "/runtimes", "/cluster"):
        visitor.go(path)
        page.locator("main h1").first.wait_for()
        page.wait_for_timeout(700)
        page.evaluate(_axe())
        for violation in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:160] for node in violation["nodes"][:3]]
                found.append(f"{path}: {violation['id']}: {violation['help']}: {nodes}")
    assert not found, "\n".join(found)


def test_the_keyboard_is_enough(cluster: CommandLine, job: str, visit: Callable[..., Visitor]) -> None:
    page = visit(address_of(cluster.directory), key_of(cluster.directory)).go("/")
    page.get_by_role("link", name="looked-at").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("looked-at")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("looked-at")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="looked-at").wait_for()
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_label("Output of all ranks").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Jobs").wait_for()
    page.keyboard.press("2")
    page.get_by_role("heading", name="History").wait_for()
