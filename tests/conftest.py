"""The fixtures of all suites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import CommandLine, command_line


@pytest.fixture
def trainwright(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line, with a state directory of its own and nothing left over at the end."""
    with command_line(tmp_path / "cluster") as line:
        yield line
