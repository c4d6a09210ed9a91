"""Mutation testing: does a test fail when the code is wrong? A seeded sample of small changes, each tried by itself.

In: rooms of src/trainwright, how many mutants, a seed. Out: one line for each mutant (killed, or survived, with its
place and what was changed) and the share that was killed. Works on a copy of the sources under build/mutants.

    python tools/mutants.py --count 500 --seed 1
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutants"
TESTS = {
    "controlloop": ("tests/unit/controlloop", "tests/unit/operator", "tests/faults"),
    "pipeline": ("tests/unit/pipeline", "tests/unit/plugins", "tests/unit/operator", "tests/conformance"),
    "operator": ("tests/unit/operator", "tests/faults"),
}
SECONDS = 300
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


class Mutant(NamedTuple):
    path: str
    line: int
    what: str
    source: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of one file."""
    tree = ast.parse(path.read_text())
    nodes = [node for node in ast.walk(tree) if not _is_typing(node)]
    for index, node in enumerate(nodes):
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            target = [found for found in ast.walk(changed) if not _is_typing(found)][index]
            change(target)
            line = getattr(node, "lineno", 0)
            yield Mutant(str(path.relative_to(ROOT)), line, what, ast.unparse(ast.fix_missing_locations(changed)))


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _changes(node: ast.AST):  # type: ignore[no-untyped-def]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        other = COMPARISONS[type(node.ops[0])]
        yield f"{type(node.ops[0]).__name__} to {other.__name__}", lambda it: it.ops.__setitem__(0, other())
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} to {other_op.__name__}", lambda it: setattr(it, "op", other_op())
    elif isinstance(node, ast.If | ast.While):
        yield "condition negated", lambda it: setattr(it, "test", ast.UnaryOp(ast.Not(), it.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", lambda it: setattr(it, "value", not it.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value} to {node.value + 1}", lambda it: setattr(it, "value", it.value + 1)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "call removed", lambda it: setattr(it, "value", ast.Constant(None))
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "returns None", lambda it: setattr(it, "value", ast.Constant(None))


def is_killed(mutant: Mutant, room: str) -> bool:
    target = COPY / mutant.path
    original = target.read_text()
    target.write_text(mutant.source)
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *TESTS[room]]
        done = subprocess.run(command, cwd=COPY, capture_output=True, timeout=SECONDS, check=False)
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=list(TESTS))
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.85, help="the share that must be killed")
    flags = parser.parse_args()
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in ("src", "tests", "manifests", "examples", "tools", "bench", "pyproject.toml", "requirements", "docs"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, COPY / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, COPY / name)
    found = [
        (room, mutant)
        for room in flags.rooms
        for path in sorted((ROOT / "src" / "trainwright" / room).rglob("*.py"))
        for mutant in mutants_of(path)
    ]
    chosen = random.Random(flags.seed).sample(found, min(flags.count, len(found)))  # noqa: S311
    killed = 0
    for room, mutant in chosen:
        dead = is_killed(mutant, room)
        killed += dead
        print(f"{'killed  ' if dead else 'SURVIVED'} {mutant.path}:{mutant.line} {mutant.what}", flush=True)
    share = killed / max(1, len(chosen))
    print(f"{killed} of {len(chosen)} killed ({share:.0%}), of {len(found)} possible, seed {flags.seed}")
    return 0 if share >= flags.least else 1


if __name__ == "__main__":
    sys.exit(main())
