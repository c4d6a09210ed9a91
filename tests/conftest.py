"""The fixtures of all suites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import CommandLine, command_line, in_process


@pytest.fixture
def trainwright(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line, with a state directory of its own and nothing left over at the end."""
    with command_line(tmp_path / "cluster") as line:
        yield line


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A cluster that is up, for tests that do not mind jobs which have ended. Starting one takes 1.3 s of CPU."""
    with in_process(tmp_path_factory.mktemp("shared") / "cluster") as line:
        line("up", "--detach")
        yield line
