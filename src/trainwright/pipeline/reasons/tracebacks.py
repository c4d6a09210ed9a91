"""Exceptions in the output of Python programs, and what torchrun says of its ranks at the end.

In: the lines of one container and who speaks there. Out: every exception that ended in a line of its own, with the
rank and the last place in the user's own code; and the rank that torchrun saw fail first. torchrun's own traceback is
left out: it says only that a rank failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainwright.pipeline.reasons.ranks import Speaker

BEGIN = "Traceback (most recent call last):"
FRAME = re.compile(r'\s+File "([^"]+)", line (\d+)')
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout)\b(?:: .*)?")
"""The last line of a traceback, as it looks outside one."""
INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|/bin/[^/]+$|^<")
"""Files that are not the user's."""
LAUNCHER = re.compile(r"\bChildFailedError\b")
ROOT_CAUSE = "Root Cause (first observed failure):"
FIELD = re.compile(r"\s*(rank|exitcode|error_file|traceback)\s*: (.*)")


class Raised(NamedTuple):
    """An exception that somebody raised."""

    position: int
    label: str
    rank: int | None
    text: str
    """`FileNotFoundError: [Errno 2] …`."""
    place: str
    """`train.py:7`; empty when no frame is in the user's own code."""


class RootCause(NamedTuple):
    """The rank that torchrun saw fail first."""

    rank: int
    exit_code: int
    """Negative for a signal, as Python has it."""


def raised(lines: Iterable[str], speaker: Speaker) -> Iterator[Raised]:
    """The exceptions in the order in which they were printed. Ranks may speak at the same time."""
    blocks: dict[str, _Block] = {}
    for position, line in enumerate(lines):
        label, rank, text, _ = speaker.attribute(line)
        block = blocks.setdefault(label, _Block())
        if text.strip() == BEGIN:
            block.begin()
        elif frame := FRAME.match(text):
            block.enter(frame[1], frame[2])
        elif text[:1].isspace() or not text:
            continue  # the source of a frame
        elif block.is_open or EXCEPTION.fullmatch(text.rstrip()):
            if not LAUNCHER.search(text):
                yield Raised(position, label, rank, text.rstrip(), block.place)
            block.end()


class _Block:
    """The traceback that is being read."""

    def __init__(self) -> None:
        self.end()

    def begin(self) -> None:
        self.is_open, self.place = True, ""

    def end(self) -> None:
        self.is_open, self.place = False, ""

    def enter(self, path: str, line: str) -> None:
        if not INSTALLED.search(path):
            self.place = f"{path.rsplit('/', 1)[-1]}:{line}"


def root_cause(lines: Iterable[str]) -> RootCause | None:
    """What torchrun's table says, if there is one."""
    found: dict[str, str] | None = None
    for line in lines:
        if ROOT_CAUSE in line:
            found = {}
        elif found is not None and (field := FIELD.match(line)):
            found.setdefault(field[1], field[2].split(" ", 1)[0])
    try:
        return RootCause(int(found["rank"]), int(found["exitcode"])) if found else None
    except (KeyError, ValueError):
        return None
