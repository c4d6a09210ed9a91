#!/usr/bin/env python3
"""The record of tests that needed more than one try, and how CI judges it.

    tries.py may-repeat FILE     exit 0 if the tests that failed are few enough to run once more, by themselves
    tries.py report FILE...      print every test that needed a second try; exit 1 if a suite has too many of them

Each suite has one file of JSON lines. A pytest session begins its part with `{"session": …}` and adds a line for each
test that failed (`{"failed": …, "why": …}`) or that passed only after it had tried again by itself
(`{"repeated": …, "why": …}`). `selfcheck.secondtries` writes the lines. This module needs the standard library only, so
that CI can report even if nothing could be installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 3
"""So many tests of one suite may need a second try on a busy machine; more of them are a defect."""


@dataclass
class Session:
    """One run of pytest: the reasons by test."""

    failed: dict[str, str] = field(default_factory=dict)
    repeated: dict[str, str] = field(default_factory=dict)


@dataclass
class Suite:
    """The sessions of one suite, oldest first."""

    name: str
    sessions: list[Session]

    def second_tries(self) -> dict[str, str]:
        """Tests that passed in the end, but not at once, with the reason of the first failure."""
        found: dict[str, str] = {}
        for session in self.sessions:
            found = {**session.failed, **session.repeated, **found}
        return {test: why for test, why in found.items() if test not in self.failed()}

    def failed(self) -> dict[str, str]:
        """Tests that failed in the last session."""
        return self.sessions[-1].failed if self.sessions else {}

    def may_repeat(self) -> bool:
        """Whether some tests failed, and no more than may need a second try."""
        return bool(self.failed()) and len(self.failed().keys() | self.second_tries().keys()) <= LIMIT


def add_line(file: Path, line: dict[str, str]) -> None:
    """Add one line to a suite's record."""
    with file.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def read(file: Path) -> Suite:
    """Read a suite's record. A file that does not exist is a suite that never began."""
    sessions: list[Session] = []
    for text in file.read_text().splitlines() if file.exists() else ():
        line = json.loads(text)
        if "session" in line:
            sessions.append(Session())
        elif "failed" in line:
            sessions[-1].failed.setdefault(line["failed"], line["why"])
        else:
            sessions[-1].repeated.setdefault(line["repeated"], line["why"])
    return Suite(file.stem, sessions)


def report(suites: Sequence[Suite]) -> tuple[list[str], bool]:
    """The lines to print, and whether the suites stay within the limit."""
    lines: list[str] = []
    for suite in suites:
        for title, tests in (("failed", suite.failed()), ("needed a second try", suite.second_tries())):
            lines += [f"{suite.name}: {title}: {test}  ({why})" for test, why in sorted(tests.items())]
    too_many = [suite for suite in suites if len(suite.second_tries()) > LIMIT]
    lines += [
        f"{suite.name}: {len(suite.second_tries())} tests needed a second try; at most {LIMIT} of one suite may"
        for suite in too_many
    ]
    return lines or ["no test needed a second try"], not too_many


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["may-repeat", "report"])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    suites = [read(file) for file in options.files]
    if options.command == "may-repeat":
        return 0 if all(suite.may_repeat() for suite in suites) else 1
    lines, fine = report(suites)
    print("\n".join(lines))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
