"""Tests that need a second try are told on, counted, and too many of them fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from selfcheck import tries

FLAKY = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_flaky(number):
    mark = pathlib.Path(__file__).with_name(f"mark-{{number}}")
    first = not mark.exists()
    mark.touch()
    assert not first, "not at once"

def test_steady():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite of its own, in a process of its own, with the plugin."""
    tests = Path(tries.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", str(tests))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest('pytest_plugins = ["selfcheck.secondtries"]')
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("--record-tries=tries/small.jsonl", *options)


def record(suite: pytest.Pytester) -> Path:
    return suite.path / "tries" / "small.jsonl"


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "1"]], ids=["one process", "xdist"])
def test_what_fails_at_first_and_passes_then_needed_a_second_try(suite: pytest.Pytester, workers: list[str]) -> None:
    suite.makepyfile(FLAKY.format(count=2))
    assert run(suite, *workers).ret == pytest.ExitCode.TESTS_FAILED
    assert tries.read(record(suite)).may_repeat()
    assert run(suite, "--last-failed", *workers).ret == pytest.ExitCode.OK
    judged = tries.read(record(suite))
    reasons = judged.second_tries()
    assert {name.rpartition("::")[2] for name in reasons} == {"test_flaky[0]", "test_flaky[1]"}
    assert all("not at once" in why for why in reasons.values())
    assert not judged.failed()
    assert tries.report([judged])[1], "two are within the limit"


def test_more_than_three_of_one_suite_are_too_many(suite: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    suite.makepyfile(FLAKY.format(count=4))
    run(suite)
    assert tries.main(["may-repeat", str(record(suite))]) == 1
    run(suite, "--last-failed")
    capsys.readouterr()
    assert tries.main(["report", str(record(suite))]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("small: needed a second try: ")]) == 4
    assert lines[-1] == "small: 4 tests needed a second try; at most 3 of one suite may"


def test_what_fails_twice_failed(suite: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    suite.makepyfile("def test_broken():\n    assert False, 'broken for good'\n")
    run(suite)
    run(suite, "--last-failed")
    judged = tries.read(record(suite))
    assert not judged.second_tries()
    assert "broken for good" in judged.failed()["test_what_fails_twice_failed.py::test_broken"]


def test_a_file_that_cannot_be_collected_failed(suite: pytest.Pytester) -> None:
    suite.makepyfile("import no_such_module_anywhere\n")
    run(suite)
    assert list(tries.read(record(suite)).failed().values()) == ["could not be collected"]


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "1"]], ids=["one process", "xdist"])
def test_a_try_repeated_inside_a_test_counts_and_is_shown(suite: pytest.Pytester, workers: list[str]) -> None:
    suite.makepyfile("def test_patient(second_try):\n    second_try('the first answer was late')\n")
    result = run(suite, *workers)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["needed a second try: *::test_patient  (the first answer was late)"])
    judged = tries.read(record(suite))
    assert list(judged.second_tries().values()) == ["the first answer was late"]
    assert not judged.may_repeat(), "nothing failed"


def test_a_quiet_day_is_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tries.main(["report", str(tmp_path / "never-began.jsonl")]) == 0
    assert capsys.readouterr().out == "no test needed a second try\n"
