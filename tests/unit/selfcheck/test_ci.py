"""`.ci/run`, over small suites in place of the real ones: what it prints last, and when it fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FLAKY = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_flaky(number):
    mark = pathlib.Path(__file__).with_name(f"mark-{{number}}")
    first = not mark.exists()
    mark.touch()
    assert not first
"""

SUITES = re.findall(r"^(?:timed|suite) make (\S+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real `.ci/run`, whose suites are one file each."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copytree(ROOT / "tests" / "selfcheck", tmp_path / "tests" / "selfcheck")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["selfcheck.secondtries"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = tests\n")
    return tmp_path


def with_suite(project: Path, suite: str, tests: str) -> None:
    """Make one suite of these tests; the others find nothing to do."""
    (project / "test_it.py").write_text(tests)
    others = sorted({*SUITES} - {suite})
    command = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q $(OPTIONS)"
    (project / "Makefile").write_text(f"{' '.join(others)}:\n\t@true\n{suite}:\n\t@{command}\n")


def ci(project: Path) -> tuple[int, list[str]]:
    # The variables by which make and pytest speak to their children are about the suite that this test is in.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST"))
    }
    command = [project / ".ci" / "run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    return done.returncode, done.stdout.splitlines()


def after(lines: list[str], title: str) -> list[str]:
    return lines[lines.index(title) + 1 :]


def test_a_good_run_ends_with_a_line_that_says_so(project: Path) -> None:
    with_suite(project, "test", "def test_fine():\n    pass\n")
    code, lines = ci(project)
    assert code == 0
    timed = [line.split()[2].strip(":") for line in lines if line.startswith("== make") and line.endswith(" s")]
    assert timed == SUITES
    assert {"check", "test", "test-kubectl", "test-sdk", "test-kube"} <= set(SUITES)
    nothing, outcome = after(lines, "== second tries")
    assert nothing == "no test needed a second try"
    assert outcome.startswith("== .ci/run PASSED in ")


def test_second_tries_are_listed_last(project: Path) -> None:
    with_suite(project, "test-kubectl", FLAKY.format(count=3))
    code, lines = ci(project)
    assert code == 0
    *listed, outcome = after(lines, "== second tries")
    assert [line.split("  ")[0] for line in listed] == [
        f"test-kubectl: needed a second try: test_it.py::test_flaky[{number}]" for number in range(3)
    ]
    assert outcome.startswith("== .ci/run PASSED in ")


def test_four_of_one_suite_fail_the_run(project: Path) -> None:
    with_suite(project, "test", FLAKY.format(count=4))
    code, lines = ci(project)
    assert code != 0
    assert not any(line.startswith("== make test-kubectl") for line in lines), "it stops there"
    assert len([line for line in after(lines, "== second tries") if "test_flaky" in line]) == 4
    assert lines[-1].startswith("== .ci/run FAILED after ")


def test_what_fails_twice_fails_the_run(project: Path) -> None:
    with_suite(project, "test-kube", "def test_broken():\n    assert False\n")
    code, lines = ci(project)
    assert code != 0
    failed, outcome = after(lines, "== second tries")
    assert failed.startswith("test-kube: failed: test_it.py::test_broken  (")
    assert outcome.startswith("== .ci/run FAILED after ")


def test_four_second_tries_inside_tests_fail_the_run(project: Path) -> None:
    tests = [f"def test_{number}(second_try):\n    second_try('late')\n" for number in range(4)]
    with_suite(project, "test-sdk", "\n".join(tests))
    code, lines = ci(project)
    assert code != 0
    assert "test-sdk: 4 tests needed a second try; at most 3 of one suite may" in lines


def test_a_suite_that_does_not_even_begin_fails_the_run(project: Path) -> None:
    (project / "Makefile").write_text("check:\n\t@true\ntest:\n\t@false\n")
    code, lines = ci(project)
    assert code != 0
    assert lines[-1].startswith("== .ci/run FAILED after ")
