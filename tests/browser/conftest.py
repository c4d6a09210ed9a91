"""The live page in a real Chromium: Debian's package, driven by Playwright.

Collected only when this folder is named (`make test-browser`). Every page that a test opens is watched: a request to
anywhere else, a violation of the Content-Security-Policy, an error of a script or an executed canary fails the test.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from browser.site import ARGUMENTS, CANARY_CALLED, Visitor
from commandline import CommandLine, command_line

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(HERE in (path, *path.parents) for path in asked) else True


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    assert program, "Chromium is not installed: make test-browser installs Debian's package"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: object) -> Iterator[Callable[..., Visitor]]:
    """Opens a browser of its own for an address, signed in with a secret."""
    visitors: list[Visitor] = []

    def open(address: str, secret: str = "", **options: object) -> Visitor:
        visitor = Visitor(chromium, address, **options)
        visitors.append(visitor)
        if secret:
            visitor.sign_in(secret)
        return visitor

    yield open
    for visitor in visitors:
        visitor.close()
    for visitor in visitors:
        assert not visitor.troubles, visitor.troubles
        assert CANARY_CALLED not in visitor.console, "a canary was executed"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A local cluster with its page, for all tests that only look or have jobs of their own."""
    with command_line(tmp_path_factory.mktemp("browser") / "cluster") as line:
        line("up", "--detach", "--ui")
        yield line
