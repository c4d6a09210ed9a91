"""A pytest plugin that records tests which fail or try again, for CI to count (`selfcheck.tries`).

`--record-tries FILE` names the record. A test that repeats something by itself takes the fixture `second_try` and says
why it does; the terminal shows these tests at the end of every session.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from selfcheck import tries

PROPERTY = "second try"
SecondTry = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-tries", type=Path, metavar="FILE", help="add failures and second tries to this record")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # under xdist the workers send their reports to this process
        config.pluginmanager.register(Recorder(config.getoption("--record-tries")))


@pytest.fixture
def second_try(request: pytest.FixtureRequest) -> SecondTry:
    """Call it with the reason when a test repeats what it checks."""

    def note(why: str) -> None:
        request.node.user_properties.append((PROPERTY, why))

    return note


class Recorder:
    """Writes the record as reports come in, so that it is complete even if the session is killed."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.repeated: dict[str, str] = {}
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)

    def pytest_sessionstart(self) -> None:
        self._add({"session": "begins"})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._add({"failed": report.nodeid, "why": _first_line(report)})
        if report.when == "teardown":
            for name, why in report.user_properties:
                if name == PROPERTY:
                    self.repeated.setdefault(report.nodeid, str(why))
                    self._add({"repeated": report.nodeid, "why": str(why)})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._add({"failed": report.nodeid, "why": "could not be collected"})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for test, why in self.repeated.items():
            terminalreporter.write_line(f"needed a second try: {test}  ({why})")

    def _add(self, line: dict[str, str]) -> None:
        if self.file is not None:
            tries.add_line(self.file, line)


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return f"{report.when}: {next(iter(text.splitlines()), '')[:200]}"
