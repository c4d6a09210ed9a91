"""The command lines of pages and helps: what a reader copies into a terminal.

In: Markdown files, and the table of commands. Out: `CommandLine`s with the place where each stands. A command line is a
line of a block (fenced as `sh`, `bash` or `console`, or indented by four) that begins with `$ ` or with a program that
we know, and every example of a `--help`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trainwright.cli import commands

ROOT = Path(__file__).parents[2]
PROGRAMS = (
    "trainwright",
    "kubectl",
    "helm",
    "make",
    "pip",
    "export",
    "source",
    "python",
    "python3",
    "docker",
    "curl",
    "uv",
    "cd",
)
SHELLS = ("", "sh", "bash", "console", "shell")


class CommandLine(NamedTuple):
    text: str
    place: str


def pages() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return found + sorted((ROOT / "examples").rglob("README.md"))


def of_pages() -> Iterator[CommandLine]:
    for page in pages():
        if page.name != "reference-cli.md":  # generated from the helps
            yield from of_text(page.read_text(), str(page.relative_to(ROOT)))


def of_helps() -> Iterator[CommandLine]:
    for group in commands.GROUPS:
        for command in commands.of_group(group):
            for example in command.examples:
                yield CommandLine(example.words, f"trainwright {command.name} --help")


def of_text(text: str, place: str) -> Iterator[CommandLine]:
    language: str | None = None
    held = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence := re.match(r"\s*```+\s*(\w*)", line):
            language = fence[1] if language is None else None
            continue
        in_block = language in SHELLS or (language is None and line.startswith("    "))
        if not in_block:
            held = ""
            continue
        words = f"{held}{line.strip().removeprefix('$ ')}"
        if words.endswith("\\"):
            held = words[:-1]
            continue
        held = ""
        words = re.sub(r"\s+#(\s.*)?$", "", words).strip()
        if words.split()[:1] and words.split()[0] in PROGRAMS:
            yield CommandLine(words, f"{place}:{number}")
