"""The runtime that a Python program wants, by what it imports.

A script that imports PyTorch, or a library that trains with it, runs under `torch-distributed`; one that imports JAX
under `jax-distributed`, TensorFlow under `tensorflow-distributed`, mpi4py under `mpi-distributed`; any other under
`plain`. Modules that lie beside the script are read too, since a `train.py` often imports a neighbour that imports
torch. Nothing is executed, and a file that cannot be parsed counts for nothing: Python itself will say what is wrong
with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PLAIN = "plain"
TORCH_RUNTIME = "torch-distributed"
MPI_RUNTIME = "mpi-distributed"
RUNTIMES = {
    **dict.fromkeys(
        ("torch", "torchvision", "lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "trl"),
        TORCH_RUNTIME,
    ),
    **dict.fromkeys(("jax", "flax"), "jax-distributed"),
    "tensorflow": "tensorflow-distributed",
    "mpi4py": MPI_RUNTIME,
}
FILES_READ = 200
LARGEST = 1_000_000


def default_runtime(script: Path | None, roots: list[Path]) -> str:
    """The runtime of a script. Modules are looked for in `roots`. PyTorch wins where several are imported."""
    found: set[str] = set()
    waiting = [script] if script is not None else []
    seen: set[Path] = set()
    while waiting and len(seen) < FILES_READ:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in _imports(file):
            if runtime := RUNTIMES.get(name.partition(".")[0]):
                found.add(runtime)
            waiting += _files_of(name, [file.parent, *roots])
        if TORCH_RUNTIME in found:
            break
    return TORCH_RUNTIME if TORCH_RUNTIME in found else next(iter(sorted(found)), PLAIN)


def script_of_module(module: str, roots: list[Path]) -> Path | None:
    """The file of a module, or None where it is not under the roots (an installed one)."""
    return next(iter(_files_of(f"{module}.__main__", roots) or _files_of(module, roots)), None)


def _imports(file: Path) -> Iterator[str]:
    try:
        if file.stat().st_size > LARGEST:
            return
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module is not None:
                yield node.module
            yield from (".".join(filter(None, (node.module, alias.name))) for alias in node.names)


def _files_of(module: str, roots: list[Path]) -> list[Path]:
    """The file of a module under the first root that has it."""
    path = Path(*module.split("."))
    for root in roots:
        for file in (root / path.with_suffix(".py"), root / path / "__init__.py"):
            if file.is_file():
                return [file]
    return []
