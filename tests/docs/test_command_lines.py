"""Every command line that a reader may copy does what it says: from the README, `docs/`, and every `--help`.

Always: each line of ours is understood by the command line as it is now, and each line is either run or listed with the
reason why not (`notrun.py`). Some run here; with TRAINWRIGHT_DOCS=1 (`make test-docs`) all of them do.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

import pytest

from docs.commandlines import CommandLine, of_helps, of_pages, of_text
from docs.notrun import NOT_RUN
from docs.stage import Stage
from trainwright.cli.arguments import parse

ALL = os.environ.get("TRAINWRIGHT_DOCS") == "1"
SHORT = ("README.md", "docs/commands.md", "trainwright diff")
"""Places whose lines run in `make test`."""


def why_not(line: str) -> str | None:
    return next((reason for pattern, reason in NOT_RUN.items() if re.fullmatch(pattern, line)), None)


LINES = {line.text: line for line in [*of_pages(), *of_helps()]}
RUN = [line for line in LINES.values() if why_not(line.text) is None]
HERE = [line for line in RUN if ALL or (line.place.startswith(SHORT) and not line.text.startswith("kubectl"))]


@pytest.mark.parametrize("line", LINES.values(), ids=lambda line: line.place)
def test_a_line_is_understood_by_the_command_line_of_today(line: CommandLine) -> None:
    for part in re.split(r"\s*\|\s*|&&|;|<\(|\)", line.text):
        words = shlex.split(part.replace("kubectl trainjob ", "trainwright "))
        if words[:1] == ["trainwright"]:
            command, flags = parse(words[1:])  # exits with a message when it is not
            if command.settle is not None:
                command.settle(flags)


@pytest.mark.parametrize("line", RUN, ids=lambda line: line.place)
def test_a_line_of_another_program_is_run_or_listed(line: CommandLine) -> None:
    program = line.text.split()[0]
    assert program in ("trainwright", "kubectl", "source"), f"{line}: list it in tests/docs/notrun.py, with the reason"


def test_every_reason_is_still_needed() -> None:
    unused = [pattern for pattern in NOT_RUN if not any(re.fullmatch(pattern, line) for line in LINES)]
    assert not [pattern for pattern in unused if "make" not in pattern and "pip" not in pattern]


def test_lines_are_found_where_they_stand() -> None:
    text = "Do:\n\n    $ trainwright get   # all\n\n```sh\ntrainwright run a.py \\\n  --nodes 2\nprinted\n```\n"
    assert [line.text for line in of_text(text, "x.md")] == ["trainwright get", "trainwright run a.py --nodes 2"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    kubectl = None
    if ALL:
        from kube.binaries import build

        kubectl = build.program("kubectl")
    stage = Stage(tmp_path_factory.mktemp("reader"), kubectl)
    yield stage
    stage.close()


@pytest.mark.parametrize("line", HERE, ids=lambda line: f"{line.place}: {line.text}")
def test_a_line_does_what_it_says(stage: Stage, line: CommandLine) -> None:
    stage.run(line.text)
