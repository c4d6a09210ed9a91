"""The `machine` of the node's tests: see `machine.py`."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.node.machine import Machine
from trainwright.embedded.node.pods.directories import PodDirectories
from waiting import until


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with PodDirectories(tmp_path, lambda _: None) as directories:
        machine = Machine(directories)
        yield machine
        for directory in machine.started:
            await until("the pod's processes to end", functools.partial(directories.terminate, directory, 0))
