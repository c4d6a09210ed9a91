"""One command of `trainwright`: its name, help, flags, examples, and the function that does the work."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

Arguments = argparse.ArgumentParser


class Example(NamedTuple):
    """A line of a command's help. A test runs every one of them, or says why not."""

    words: str
    meaning: str


class Command(NamedTuple):
    name: str
    help: str
    declare: Callable[[Arguments], None]
    work: str
    """`module:function`; the function takes the parsed flags as keywords and returns the exit code."""
    examples: tuple[Example, ...]
    settle: Callable[[dict[str, Any]], None] | None = None
    """Turns what argparse found into the function's keywords, where they differ."""
    has_rest: bool = False
    """Whether everything after `--` belongs to a program, and is given to the function as `arguments`."""
    codes: tuple[tuple[int, str], ...] = ()
    """Exit codes beside 0 success, 1 refused or failed, 2 wrong usage."""
