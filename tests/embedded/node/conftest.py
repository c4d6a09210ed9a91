"""The `machine` of the node's tests: see `machine.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from embedded.node.machine import Machine
from trainwright.embedded.node.directories import PodDirectories


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with PodDirectories(tmp_path, lambda _: None) as directories:
        machine = Machine(directories)
        yield machine
        for directory in machine.started:
            while not await directories.terminate(directory, 0):
                await asyncio.sleep(0.01)
