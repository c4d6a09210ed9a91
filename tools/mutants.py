"""Mutation testing: does a test fail when the code is wrong? A seeded sample of small changes, each tried by itself.

In: rooms of src/trainwright, how many mutants, a seed. Out: one line for each mutant (killed, or survived, with its
place and what was changed) and the share that was killed. Nothing is written to the sources: a mutant is compiled in
place of its module, in a fork of a process that has pytest imported.

    python tools/mutants.py --count 500 --seed 1             all of them; a run that was ended goes on where it was
    python tools/mutants.py --shard 1/4                      the second quarter
    python tools/mutants.py --only operator/trainjobs/reconciler.py:120  those of a line

The tests of a mutant are those that run its line, by their names beside its module first, then the quick ones. Which
they are is recorded once (`build/mutants/tests.json`, some minutes; `--record` does it again). What they do not find is
tried on the fault plans of `tests/faults`. Calls of the logger are left alone: no behaviour depends on a log line.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "mutants"
SOURCES = ROOT / "src" / "trainwright"
ROOMS = ("controlloop", "pipeline", "operator")
RECORDED = (*(f"tests/unit/{room}" for room in ROOMS), "tests/unit/plugins", "tests/unit/testing", "tests/conformance")
PLANS = {"controlloop", "operator"}
MOST_TEST_SECONDS = 8.0  # of one mutant, as they were recorded
CPU_SECONDS, WALL_SECONDS = 90, 400
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
Change = Callable[[Any], None]


class Mutant(NamedTuple):
    path: str
    """Under src/trainwright."""
    line: int
    node: int
    """Its place among the nodes of the file."""
    what: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} #{self.node} {self.what}"

    @property
    def room(self) -> str:
        return self.path.partition("/")[0]

    @property
    def module(self) -> str:
        return "trainwright." + self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


# Making them


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of one file."""
    for number, node in enumerate(_nodes(ast.parse(path.read_text()))):
        change = _change(node)
        if change is not None:
            yield Mutant(str(path.relative_to(SOURCES)), getattr(node, "lineno", 0), number, change[0])


def compiled(mutant: Mutant) -> CodeType:
    path = SOURCES / mutant.path
    tree = ast.parse(path.read_text())
    node = _nodes(tree)[mutant.node]
    change = _change(node)
    assert change is not None, f"{mutant.name} is not there any more"
    change[1](node)
    return compile(ast.fix_missing_locations(tree), str(path), "exec")


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """The nodes that are carried out: no annotations, nothing for type checkers alone, no calls of a logger."""
    found: list[ast.AST] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        found.append(node)
        waiting += [child for name, child in _children(node) if not _is_left_alone(name, child)]
    return found


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child


def _is_left_alone(name: str, node: ast.AST) -> bool:
    if name in ("annotation", "returns"):
        return True
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).startswith(("log.", "self._log."))


def _change(node: ast.AST) -> tuple[str, Change] | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        other = COMPARISONS[type(node.ops[0])]
        return f"{type(node.ops[0]).__name__} to {other.__name__}", lambda it: it.ops.__setitem__(0, other())
    if isinstance(node, ast.BoolOp):
        other_op = ast.Or if isinstance(node.op, ast.And) else ast.And
        return f"{type(node.op).__name__} to {other_op.__name__}", lambda it: setattr(it, "op", other_op())
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return "condition negated", lambda it: setattr(it, "test", ast.UnaryOp(ast.Not(), it.test))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return f"{node.value} to {not node.value}", lambda it: setattr(it, "value", not it.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return f"{node.value} to {node.value + 1}", lambda it: setattr(it, "value", it.value + 1)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        return "call removed", lambda it: setattr(it, "value", ast.Constant(None))
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return "returns None", lambda it: setattr(it, "value", ast.Constant(None))
    return None


# Which tests run which line


class Recorder:
    """A plugin of pytest: tells coverage which test runs, and how long each took."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_setup(self, item: Any) -> None:
        self._coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


def record() -> None:
    """Run in a process of its own: what it imports stays out of ours."""
    import coverage
    import pytest

    BUILD.mkdir(parents=True, exist_ok=True)
    data = BUILD / "coverage"
    measured = coverage.Coverage(
        data_file=str(data), branch=False, config_file=False, include=[f"{SOURCES}/{room}/*" for room in ROOMS]
    )
    recorder = Recorder(measured)
    measured.start()
    pytest.main([*_options(), *RECORDED], plugins=[recorder])
    measured.stop()
    lines: dict[str, dict[int, list[str]]] = {}
    kept = measured.get_data()
    for name in kept.measured_files():
        of_line = kept.contexts_by_lineno(name)
        lines[str(Path(name).relative_to(SOURCES))] = {
            line: sorted(test for test in tests if test and test not in recorder.failed)
            for line, tests in of_line.items()
        }
    (BUILD / "tests.json").write_text(json.dumps({"seconds": recorder.seconds, "lines": lines}))
    print(f"recorded {len(recorder.seconds)} tests, {len(recorder.failed)} of them not used, since they fail alone")


def _options() -> list[str]:
    without = ("cacheprovider", "xdist", "unraisableexception", "threadexception")
    return ["-q", *(f"-pno:{name}" for name in without), "--no-header", "--no-summary", "--timeout=120"]


class Tests:
    """The tests of a mutant, in the order in which they are tried."""

    def __init__(self) -> None:
        found = json.loads((BUILD / "tests.json").read_text())
        self._seconds: dict[str, float] = found["seconds"]
        self._lines: dict[str, dict[str, list[str]]] = found["lines"]

    def of(self, mutant: Mutant) -> list[str]:
        of_file = self._lines.get(mutant.path, {})
        tests = set(of_file.get(str(mutant.line), ()))
        if not tests and str(mutant.line) in of_file:  # carried out when the module is imported
            tests = {test for names in of_file.values() for test in names}
        beside = f"test_{Path(mutant.path).stem.strip('_')}.py"
        order = sorted(tests, key=lambda test: (beside not in test, self._seconds.get(test, 0.0)))
        chosen, left = [], MOST_TEST_SECONDS
        for test in order:
            left -= self._seconds.get(test, 0.0)
            if left < 0:
                break
            chosen.append(test)
        return chosen or order[:1]


# Trying them


class Mutated(MetaPathFinder, Loader):
    """Gives the mutant when its module is imported."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.module
        self._is_package = mutant.path.endswith("__init__.py")
        self._path = SOURCES / mutant.path
        self._code = compiled(mutant)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = spec_from_loader(fullname, self, origin=str(self._path), is_package=self._is_package)
        if spec is not None and self._is_package:
            spec.submodule_search_locations = [str(self._path.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(self._code, module.__dict__)  # noqa: S102 - our own source, changed


def verdict(mutant: Mutant | None, tests: list[str]) -> str:
    """`killed`, `killed: CPU`, `killed: hangs`, or `SURVIVED`. Without a mutant the tests must survive."""
    pid = os.fork()
    if pid == 0:
        _child(mutant, tests)
    end = time.monotonic() + WALL_SECONDS
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.killpg(pid, 9)
            os.waitpid(pid, 0)
            return "killed: hangs"
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(status)
    return "SURVIVED" if code == 0 else "killed" if code > 0 else "killed: CPU"


def _child(mutant: Mutant | None, tests: list[str]) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(ROOT)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        import pytest

        gc.disable()  # it ends soon
        if mutant is not None:
            sys.meta_path.insert(0, Mutated(mutant))
        code = int(pytest.main(["-x", *_options(), *tests]))
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends with it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def check_unchanged(mutants: list[Mutant], tests: Tests) -> None:
    """The tests pass here as long as nothing is changed; else every mutant would be taken for killed."""
    for mutant in mutants:
        chosen = tests.of(mutant)
        assert verdict(None, chosen) == "SURVIVED", f"with the code as it is a test fails among:\n{chosen}"


def judged(mutant: Mutant, tests: list[str]) -> str:
    if not tests:
        return "SURVIVED: no test runs it"
    found = verdict(mutant, tests)
    if found == "SURVIVED" and mutant.room in PLANS:
        found = verdict(mutant, ["tests/faults/test_plans.py"])
        found = f"{found} (plans)" if found != "SURVIVED" else found
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=list(ROOMS))
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--only", help="PATH or PATH:LINE under src/trainwright")
    parser.add_argument("--record", action="store_true", help="find out again which tests run which line, and end")
    parser.add_argument("--least", type=float, default=0.85, help="the share that must be killed")
    flags = parser.parse_args()
    if flags.record:
        record()
        return 0
    if not (BUILD / "tests.json").exists():
        subprocess.run([sys.executable, __file__, "--record"], check=True, cwd=ROOT)
    import cryptography.x509  # noqa: F401 - imported once, for all forks; plugins of pytest must not be
    import msgspec  # noqa: F401
    import pytest  # noqa: F401
    import yaml  # noqa: F401

    found = [
        mutant for room in flags.rooms for path in sorted((SOURCES / room).rglob("*.py")) for mutant in mutants_of(path)
    ]
    if flags.only:
        chosen = [mutant for mutant in found if f"{mutant.path}:{mutant.line}:".startswith(f"{flags.only}:")]
    else:
        chosen = random.Random(flags.seed).sample(found, min(flags.count, len(found)))  # noqa: S311
    shard, of = map(int, flags.shard.split("/"))
    tests, killed = Tests(), 0
    mine = chosen[shard::of]
    check_unchanged(mine[:1], tests)
    with (BUILD / "results.txt").open("a+") as results:
        results.seek(0)
        known = {} if flags.only else dict(line.strip().partition("\t")[::2] for line in results)
        for mutant in mine:
            outcome = known.get(mutant.name) or judged(mutant, tests.of(mutant))
            killed += outcome.startswith("killed")
            if mutant.name not in known:
                results.write(f"{mutant.name}\t{outcome}\n")
                results.flush()
                print(f"{outcome:<16} {mutant.name}", flush=True)
    share = killed / max(1, len(mine))
    print(f"{killed} of {len(mine)} killed ({share:.0%}), of {len(found)} possible, seed {flags.seed}")
    return 0 if share >= flags.least else 1


if __name__ == "__main__":
    sys.exit(main())
