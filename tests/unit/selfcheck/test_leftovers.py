"""A test that leaves a task or a process behind fails, and what the fixtures start ends with a test that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from selfcheck import leftovers


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite of its own, in a process of its own, with the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(Path(leftovers.__file__).parents[1]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest("from selfcheck import leftovers\nleftovers.PATIENCE_SECONDS = 1.0\n")
    return pytester


def run(suite: pytest.Pytester, tests: str) -> pytest.RunResult:
    suite.makepyfile(tests)
    return suite.runpytest_subprocess("-p", "selfcheck.leftovers", "-p", "pytest_asyncio.plugin", "--asyncio-mode=auto")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_task_left_behind_is_an_error(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import asyncio
        async def test_forgetful():
            global task
            task = asyncio.create_task(asyncio.sleep(60), name="forgotten")
        async def test_tidy():
            await asyncio.create_task(asyncio.sleep(0))
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*tasks are left behind: forgotten*"])


def test_a_process_left_behind_is_an_error_and_is_ended(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import pathlib, subprocess
        def test_forgetful():
            global process
            process = subprocess.Popen(["sleep", "600"])
            pathlib.Path("pid").write_text(str(process.pid))
        def test_tidy():
            subprocess.run(["true"], check=True)
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*processes are left behind: *(sleep 600)*"])
    assert not is_alive(int((suite.path / "pid").read_text()))


def test_what_the_fixtures_start_ends_with_a_test_that_fails(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import asyncio, pathlib
        async def test_it(tasks, processes):
            global task
            task = tasks.start(asyncio.sleep(60))
            process = processes.start(["sleep", "600"])
            pathlib.Path("pid").write_text(str(process.pid))
            assert False
        """,
    )
    result.assert_outcomes(failed=1)
    assert not is_alive(int((suite.path / "pid").read_text()))


def test_a_test_may_restart_a_process_that_was_there_before(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import subprocess, pytest
        COMMAND = ["sleep", "61"]
        @pytest.fixture(scope="module")
        def server():
            held = [subprocess.Popen(COMMAND)]
            yield held
            held[0].kill(), held[0].wait()
        def test_uses(server):
            pass
        def test_restarts(server):
            server[0].kill(), server[0].wait()
            server[0] = subprocess.Popen(COMMAND)
        def test_starts_a_second(server):
            subprocess.Popen(COMMAND)
        """,
    )
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*ERROR*test_starts_a_second*", "*processes are left behind: * (sleep 61)*"])
