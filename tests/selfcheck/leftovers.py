"""A pytest plugin: what a test starts ends with it, also when it fails, and a test that leaves something behind fails.

The fixtures `tasks` and `processes` start things that end with the test. After every test the plugin looks for asyncio
tasks and child processes that were not there before; whatever it finds is ended, and the test has an error.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

PATIENCE_SECONDS = 2.0
"""How long something that is ending may still be seen."""

T = TypeVar("T")


class Tasks:
    """Starts asyncio tasks that are cancelled when the test is over."""

    def __init__(self) -> None:
        self._started: list[asyncio.Task[Any]] = []

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._started.append(task)
        return task

    async def end(self) -> None:
        for task in self._started:
            task.cancel()
        await asyncio.gather(*self._started, return_exceptions=True)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    tasks = Tasks()
    yield tasks
    await tasks.end()


class Processes:
    """Starts processes that are killed when the test is over."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[Any]:
        process: subprocess.Popen[Any] = subprocess.Popen(command, **options)
        self._stack.enter_context(process)  # closes its pipes and waits
        self._stack.callback(process.kill)
        return process

    def end(self) -> None:
        self._stack.close()


@pytest.fixture
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.end()


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    before = {pid: _command(pid) for pid in child_processes()}
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("no_task_left_behind")
    yield
    end = time.monotonic() + PATIENCE_SECONDS
    while (left := _left_behind(before)) and time.monotonic() < end:
        time.sleep(0.02)
    if left:
        told = sorted(f"{pid} ({_command(pid)})" for pid in left)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        pytest.fail(f"processes are left behind: {', '.join(told)}", pytrace=False)


@pytest.fixture
async def no_task_left_behind() -> AsyncIterator[None]:
    yield
    end = time.monotonic() + PATIENCE_SECONDS
    while (left := asyncio.all_tasks() - {asyncio.current_task()}) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    if left:
        told = sorted(f"{task.get_name()} ({task.get_coro()})" for task in left)
        for task in left:
            task.cancel()
        pytest.fail(f"tasks are left behind: {', '.join(told)}", pytrace=False)


def child_processes() -> frozenset[int]:
    """The processes that a thread of this one has started and nobody has waited for."""
    children: list[str] = []
    for thread in Path("/proc/self/task").iterdir():
        try:
            children += (thread / "children").read_text().split()
        except OSError:
            pass  # the thread has ended
    return frozenset(map(int, children))


def _left_behind(before: dict[int, str]) -> set[int]:
    """The new processes, except for those in the place of an older one: a test may restart what is not its own."""
    now = child_processes()
    replaced = [command for pid, command in before.items() if pid not in now]
    left = set()
    for pid in now - before.keys():
        if (command := _command(pid)) in replaced:
            replaced.remove(command)
        else:
            left.add(pid)
    return left


def _command(pid: int) -> str:
    try:
        for _ in range(100):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            if words or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return words or "ended, not waited for"
            time.sleep(0.001)  # in the middle of its exec: it has no command line yet
    except OSError:
        return "gone"
    return "unknown"
